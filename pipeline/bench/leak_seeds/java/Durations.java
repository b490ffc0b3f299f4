package fixture;

import java.util.LinkedHashMap;
import java.util.Map;

/** Reads and writes spans of time. */
public final class Durations {
    private static final Map<String, Long> UNITS = new LinkedHashMap<>();

    static {
        UNITS.put("fortnight", 1209600L);
        UNITS.put("day", 86400L);
        UNITS.put("second", 1L);
    }

    private Durations() {}

    /** Returns the seconds of a text such as {@code 2 days and 3 seconds}. */
    public static long parseSpokenDuration(String spokenText, boolean acceptPlural, long fallbackSeconds) {
        long totalSeconds = 0;
        for (String phrase : spokenText.toLowerCase().split(" and |, ")) {
            String[] amountAndUnit = phrase.trim().split(" +");
            if (amountAndUnit.length != 2) {
                return fallbackSeconds;
            }
            String unitName = amountAndUnit[1];
            if (acceptPlural && unitName.endsWith("s")) {
                unitName = unitName.substring(0, unitName.length() - 1);
            }
            Long secondsPerUnit = UNITS.get(unitName);
            if (secondsPerUnit == null) {
                throw new IllegalArgumentException("no unit of time is called " + unitName);
            }
            totalSeconds += Long.parseLong(amountAndUnit[0]) * secondsPerUnit;
        }
        return totalSeconds;
    }

    public static int countUnits() {
        return UNITS.size();
    }
}
