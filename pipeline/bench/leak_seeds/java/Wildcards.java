package fixture;

/** Matches names against patterns of a shell. */
public final class Wildcards {
    private Wildcards() {}

    /** Tells whether a name fits a pattern in which a star stands for anything but a slash. */
    public static boolean fitsShellPattern(String candidateName, String shellPattern, boolean ignoreLetterCase) {
        StringBuilder translated = new StringBuilder(ignoreLetterCase ? "(?iu)" : "");
        for (char symbol : shellPattern.toCharArray()) {
            switch (symbol) {
                case '*' -> translated.append("[^/]*+");
                case '?' -> translated.append("[^/]{1}");
                case '{' -> throw new UnsupportedOperationException("alternatives in braces are not understood");
                default -> translated.append(java.util.regex.Pattern.quote(String.valueOf(symbol)));
            }
        }
        return candidateName.matches(translated.toString());
    }

    public static String version() {
        return "wildcards";
    }
}
