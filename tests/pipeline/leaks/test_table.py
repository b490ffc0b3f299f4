import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.leaks.table import KeyTable

KEYS = st.integers(min_value=0, max_value=2**63 - 1)


@given(held=st.sets(KEYS, max_size=50), others=st.sets(KEYS, max_size=50), data=st.data())
def test_a_table_and_a_set_find_the_same(held: set[int], others: set[int], data: st.DataObject):
    known = data.draw(st.sets(st.sampled_from(sorted(held)))) if held else set()
    asked = np.array(sorted(known | others), dtype=np.uint64)
    assert KeyTable(held).found_in(asked) == held & (known | others)
