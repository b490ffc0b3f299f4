"""A suite of unittest with all its hooks."""

import pytest

from tests.pipeline.awkward.conftest import Farm, FarmFor, targets

FILES = {
    "setup.cfg": "[tool:pytest]\ntestpaths = test\n",
    "coins/__init__.py": '"""Coins."""\n\nfrom coins.money import change, count, pack, worth\n',
    "coins/money.py": '''\
"""Money."""


def count(coins):
    """Return what coins are worth."""
    pennies = {"penny": 1, "dime": 10}
    values = [pennies[coin] for coin in coins]
    return sum(values)


def change(amount):
    """Return the fewest coins."""
    dimes, pennies = divmod(amount, 10)
    coins = ["dime"] * dimes + ["penny"] * pennies
    return coins


def pack(coins, size):
    """Put coins into rolls."""
    starts = range(0, len(coins), size)
    rolls = [coins[start : start + size] for start in starts]
    return rolls


def worth(coin, num=1):
    """Return what some coins of a kind are worth."""
    pennies = {"penny": 1, "dime": 10}
    each = pennies[coin]
    return each * num
''',
    "test/__init__.py": """\
import unittest


def load_tests(loader, tests, pattern):
    tests.addTests(loader.discover("test", pattern="*_cases.py"))
    return tests
""",
    "test/test_money.py": """\
import unittest

from coins import change, count, pack, worth


def setUpModule():
    global PURSE
    PURSE = ["dime", "penny"]


class CountTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.total = count(PURSE)

    def test_total(self):
        self.assertEqual(self.total, 11)

    def test_nothing(self):
        self.assertEqual(count([]), 0)


class LoopTest(unittest.TestCase):
    def test_count(self):
        for num in range(3):
            with self.subTest(num=num):
                self.assertEqual(count(["dime"] * num), 10 * num)

    def test_change(self):
        self.assertEqual(change(20), ["dime", "dime"])


class PackTest(unittest.TestCase):
    def setUp(self):
        self.rolls = pack(["a", "b", "c"], 2)

    def tearDown(self):
        del self.rolls

    def test_rolls(self):
        self.assertEqual(self.rolls, [["a", "b"], ["c"]])

    def test_sizes(self):
        self.assertEqual([len(it) for it in self.rolls], [2, 1])


class Checks:
    coin = "penny"

    def test_worth(self):
        self.assertEqual(worth(self.coin, 2), 2 * worth(self.coin))
        self.assertEqual(worth(self.coin, 0), 0)


class SingleTest(Checks, unittest.TestCase):
    pass


class DoubleTest(Checks, unittest.TestCase):
    coin = "dime"


class PurseTest(unittest.TestCase):
    @unittest.expectedFailure
    def test_never(self):
        self.fail()

    @unittest.skip("not now")
    def test_skipped(self):
        self.fail()

    def test_dime(self):
        self.assertIn("dime", PURSE)

    def test_penny(self):
        self.assertIn("penny", PURSE)
""",
}


@pytest.fixture(scope="module")
def farm(farm_for: FarmFor) -> Farm:
    return farm_for(FILES)


def test_what_is_skipped_or_expected_to_fail_is_set_aside(farm: Farm):
    assert farm.quarantined == {
        "test/test_money.py::PurseTest::test_never": "xfailed",
        "test/test_money.py::PurseTest::test_skipped": "skipped",
    }


def test_what_a_class_sets_up_and_subtests_loop_over_gives_a_task(farm: Farm):
    assert targets(farm.right_task("coins.money.count")) == {
        "test/test_money.py::CountTest::test_nothing": "error",
        "test/test_money.py::CountTest::test_total": "error",
        "test/test_money.py::LoopTest::test_count": "failed",
    }


def test_what_inherited_tests_alone_ask_for_is_no_task(farm: Farm):
    assert farm.reject("coins.money.worth").reason == "nothing_to_hide"
