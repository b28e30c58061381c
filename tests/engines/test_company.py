"""Several threads for a line alone, as long as nobody else computes."""

from regard.engines.company import _APART, Company
from regard.engines.layout import Layout

ONE, BOTH = Layout("int8", 1, 1), Layout("int8", 1, 2)


def lines(company: Company, number: int, seconds: dict[int, float]) -> list[int]:
    """The threads that so many lines of many lengths went to, where each takes its time."""
    used = []
    for line in range(number):
        layout, tokens = company.layout(BOTH), 5 + line % 20
        assert layout in (ONE, BOTH)
        used.append(layout.threads)
        company.took(layout, tokens, tokens * seconds[layout.threads])
    return used


def test_few_lines_are_lost_to_looking_where_several_threads_are_faster() -> None:
    used = lines(Company(), 1000, {1: 1.0, 2: 0.8})
    assert 0 < used.count(1) < 0.04 * len(used)


def test_soon_after_somebody_else_begins_to_compute_one_thread_does_all() -> None:
    company = Company()
    lines(company, 500, {1: 1.0, 2: 0.8})
    used = lines(company, 500, {1: 1.4, 2: 9.0})
    assert used[20:].count(2) < 40
    assert used[20 : 20 + _APART - 20] == [1] * (_APART - 20)


def test_several_threads_come_back_when_they_are_alone_again() -> None:
    company = Company()
    lines(company, 500, {1: 1.0, 2: 9.0})
    assert lines(company, 500, {1: 1.0, 2: 0.8})[-64:].count(2) > 60


def test_a_line_that_takes_long_does_not_decide() -> None:
    company = Company()
    for line in range(400):
        layout = company.layout(BOTH)
        slow = 30.0 if line % 3 == 0 else 1.0
        company.took(layout, 10, slow * {1: 10.0, 2: 8.0}[layout.threads])
    assert company.layout(BOTH) == BOTH


def test_nothing_is_said_before_one_thread_is_known() -> None:
    company = Company()
    for _ in range(30):
        company.took(BOTH, 10, 100.0)
    assert company.layout(BOTH) == BOTH


def test_a_text_without_tokens_takes_its_time_too() -> None:
    Company().took(BOTH, 0, 1.0)
