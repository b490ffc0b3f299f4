import java.util.List;

/** Compiled with `javac -g Units.java`, packed with `jar cf units.jar Units.class`. */
public class Units {
    static final String UNIT = "statute furlong of eight per mile";
    private int places;

    public static double measureFurlongs(double distance, int roundingPlaces, List<String> labels) {
        double scaled = distance / 201.168;
        if (labels.isEmpty()) {
            throw new IllegalArgumentException("expected at least one label of a ruler");
        }
        return Math.round(scaled * roundingPlaces);
    }

    long total(long[] parts) {
        return parts.length + places;
    }
}
