import json

import numpy as np

from hltnode.processing.offline.pages.script_data import five_digits, rounded, script_json


def test_no_tag_can_begin_or_end_in_the_json_of_a_script_element() -> None:
    content = {"name": "</script><!-- & >", "values": [1.5, None]}
    text = str(script_json(content))
    assert not set("<>&") & set(text)
    assert json.loads(text) == content


def test_numbers_are_rounded_and_nan_and_infinity_become_none() -> None:
    assert rounded(np.array([1.23456, np.nan, np.inf]), 2) == [1.23, None, None]
    assert five_digits(123456.7) == 123460.0
    assert five_digits(float("nan")) is None
