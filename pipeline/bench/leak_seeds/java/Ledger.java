package fixture;

import java.util.ArrayList;
import java.util.List;

/** Books amounts in two columns. */
public final class Ledger {
    private final List<String> entries = new ArrayList<>();
    private long balanceInCents;

    public void book(String entry, long cents) {
        entries.add(entry);
        balanceInCents += cents;
    }

    /** Returns a statement with a line an entry and the balance below a rule. */
    public String renderAccountStatement(String accountHolder, int columnWidth, char ruleCharacter) {
        StringBuilder statement = new StringBuilder("Statement of account for " + accountHolder);
        statement.append(System.lineSeparator());
        for (String bookedEntry : entries) {
            statement.append(String.format("%-" + columnWidth + "s|", bookedEntry));
            statement.append(System.lineSeparator());
        }
        for (int drawn = 0; drawn < columnWidth; drawn++) {
            statement.append(ruleCharacter);
        }
        String balanceLabel = balanceInCents < 0 ? "overdrawn by" : "in credit with";
        statement.append(balanceLabel).append(Math.abs(balanceInCents) / 100.0);
        return statement.toString();
    }
}
