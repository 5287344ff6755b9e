"""What searches change in the whole process, and how it is given back."""

import os

import pytest

from r2med.retrieve.dense.exact import arithmetic

torch = pytest.importorskip("torch")


def test_of_searches_side_by_side_the_last_gives_back_what_the_program_chose():
    torch.set_float32_matmul_precision("medium")
    first, second = (arithmetic._torch_precision().held() for _ in range(2))
    try:
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert torch.get_float32_matmul_precision() == "highest", "the second still searches"
        second.__exit__(None, None, None)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")


def test_a_search_that_is_interrupted_gives_the_settings_of_the_process_back():
    settings = [2]
    shared = arithmetic._Shared(lambda: settings[-1], settings.append, 1)
    with pytest.raises(KeyboardInterrupt), shared.held():
        raise KeyboardInterrupt
    assert settings == [2, 1, 2]
    shared._write = lambda value: interrupted()

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), shared.held():
        raise AssertionError("not reached")
    shared._write = settings.append
    with shared.held():  # what the one before could not give back
        assert settings[-1] == 1
    assert settings[-1] == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_forked_while_another_thread_searches_can_search():
    openblas = arithmetic._openblas()
    before = openblas._read()
    with arithmetic.own_threads(), arithmetic._making, openblas._lock:
        child = os.fork()
        if not child:
            with arithmetic.own_threads():
                pass
            os._exit(7 if openblas._read() == before else 8)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
