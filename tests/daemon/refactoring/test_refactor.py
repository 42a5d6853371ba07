"""``laguna-daemon refactor`` as a user meets it: real repositories, the model's words scripted."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from laguna_context.tokens import load_tokenizer
from support.daemon import Home, commit, git, repository
from support.engine_probe import Probe
from support.scripts import CHECK, MISSING, REFUSED, block, create, plan, rename_lines, script_batches

UNITTEST = f"{sys.executable} -m unittest -q"
SHOP = {
    "shop/__init__.py": "",
    "shop/prices.py": (
        "def total(prices):\n"
        '    """The sum."""\n'
        "    return sum(prices)\n"
        "\n"
        "\n"
        "def mean(prices):\n"
        "    return total(prices) / len(prices)\n"
    ),
    "shop/cart.py": (
        "from shop.prices import total\n\n\nclass Cart:\n"
        "    def __init__(self, prices):\n        self.prices = prices\n\n"
        "    def pay(self):\n        return total(self.prices)\n"
    ),
    "tests/__init__.py": "",
    "tests/test_shop.py": (
        "import unittest\n\nfrom shop.cart import Cart\nfrom shop.prices import mean, total\n\n\n"
        "class Shop(unittest.TestCase):\n"
        "    def test_total(self):\n        self.assertEqual(total([1, 2, 3]), 6)\n\n"
        "    def test_pay(self):\n        self.assertEqual(Cart([1, 2]).pay(), 3)\n\n"
        "    def test_mean(self):\n        self.assertEqual(mean([2, 4]), 3)\n"
    ),
    ".gitignore": "__pycache__/\n",
}
INSTRUCTION = "Give `total` a second parameter `tax`, a factor, and update its callers"
CHANGED = {
    "shop/prices.py": block("shop/prices.py", "def total(prices):", "def total(prices, tax):")
    + block("shop/prices.py", "    return sum(prices)", "    return sum(prices) * tax")
    + block("shop/prices.py", "    return total(prices) / len(prices)", "    return total(prices, 1) / len(prices)"),
    "shop/cart.py": "SKIP shop/cart.py: it is handled below\n"
    + block("shop/cart.py", "        return total(self.prices)", "        return total(self.prices, 1)"),
    "tests/test_shop.py": block(
        "tests/test_shop.py",
        "        self.assertEqual(total([1, 2, 3]), 6)",
        "        self.assertEqual(total([1, 2, 3], 2), 12)",
    ),
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return repository(tmp_path / "shop", SHOP)


def refactor(home: Home, repo: Path, *args: str, code: int = 0) -> Any:
    """Run it; the JSON object that it prints, whatever the exit code."""
    done = home.run("refactor", *args, "--json", cwd=repo)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr, home.daemon_log())
    return json.loads(done.stdout)


def answer(engine: Probe, *texts: str, **rules: str) -> None:
    """The first answer to INSTRUCTION, and those at the later turns."""
    keys = {"refused": REFUSED, "missing": MISSING, "check": CHECK}
    more = [{"when": keys[name], "answer": text} for name, text in rules.items()]
    engine.answers({"when": f"Refactor this repository: {INSTRUCTION}", "answer": "".join(texts)}, *more)


def clean(repo: Path) -> bool:
    return git(repo, "status", "--porcelain") == ""


class TestRealRefactorings:
    def test_a_public_function_renamed_across_forty_files(self, home: Home, engine: Probe, tmp_path: Path) -> None:
        callers = {
            f"app/part_{n}.py": f"from app.core import greet\n\n\ndef part_{n}():\n    return greet('{n}')\n"
            for n in range(39)
        }
        core = {"app/__init__.py": "", "app/core.py": "def greet(name):\n    return f'hello {name}'\n"}
        test = {
            "test_app.py": "import importlib\nimport unittest\n\n\nclass App(unittest.TestCase):\n"
            "    def test_parts(self):\n        for n in range(39):\n"
            "            part = importlib.import_module(f'app.part_{n}')\n"
            "            self.assertEqual(getattr(part, f'part_{n}')(), f'hello {n}')\n"
        }
        repo = repository(tmp_path / "app", {**core, **callers, **test, ".gitignore": "__pycache__/\n"})
        instruction = "Rename `greet` to `salutation`"
        batches = plan(home, repo, instruction)["batches"]
        assert len(batches) > 2, "one answer has no room for all of it"
        assert sorted(path for batch in batches for path in batch) == sorted(["app/core.py", *callers])
        texts = ["".join(rename_lines(repo, path, "greet", "salutation") for path in batch) for batch in batches]
        script_batches(engine, instruction, texts)
        found = refactor(home, repo, instruction, "--apply", "--check", UNITTEST)
        assert found["report"]["outcome"] == "complete"
        assert len(found["report"]["done"]) == 40
        assert found["report"]["rounds"] == 1
        assert found["report"]["turns"] == len(batches)
        assert found["checks"][0]["exit_code"] == 0
        assert "greet" not in "".join(path.read_text() for path in (repo / "app").glob("*.py"))
        for before, after in zip(found["turns"], found["turns"][1:], strict=False):
            usage = after["usage"]
            assert usage["cached_tokens"] >= 1000, "the repository's prefix is reused by every turn"
            assert usage["snapshot"] == before["usage"]["snapshot"]
        assert home.run("undo", cwd=repo).returncode == 0
        assert clean(repo)

    def test_a_module_is_split(self, home: Home, engine: Probe, tmp_path: Path) -> None:
        area, ring = "def area(r):\n    return 3 * r * r\n", "def ring(r):\n    return 6 * r\n"
        repo = repository(
            tmp_path / "geo",
            {
                "shapes.py": area + "\n\n" + ring,
                "use.py": "from shapes import area, ring\n\nprint(area(1) + ring(1))\n",
                "README.md": "Shapes live in `shapes`.\n",
            },
        )
        instruction = "Split shapes.py into `areas.py` and `rings.py`"
        found = plan(home, repo, instruction)
        assert [one["path"] for one in found["files"]] == ["README.md", "shapes.py", "use.py"]
        engine.answers(
            {
                "when": instruction,
                "answer": "<<<<<<< RENAME shapes.py -> areas.py\n>>>>>>> END\n"
                + block("areas.py", "    return 3 * r * r\n\n\ndef ring(r):\n    return 6 * r", "    return 3 * r * r")
                + create("rings.py", ring)
                + block("use.py", "from shapes import area, ring", "from areas import area\nfrom rings import ring")
                + block("README.md", "Shapes live in `shapes`.", "Shapes live in `areas` and `rings`."),
            }
        )
        done = refactor(home, repo, instruction, "--apply", "--check", f"{sys.executable} -B use.py")
        assert done["checks"][0]["output"] == "9\n"
        assert {(one["path"], one["change"], one["source"]) for one in done["report"]["done"]} == {
            ("README.md", "changed", None),
            ("areas.py", "renamed", "shapes.py"),
            ("rings.py", "created", None),
            ("use.py", "changed", None),
        }
        assert not (repo / "shapes.py").exists()
        assert (repo / "areas.py").read_text() == area
        assert (repo / "rings.py").read_text() == ring
        assert (repo / "rings.py").stat().st_mode & 0o777 == (repo / "use.py").stat().st_mode & 0o777
        assert home.run("undo", cwd=repo).returncode == 0
        assert clean(repo)

    def test_a_signature_and_its_callers_with_the_repositorys_tests(
        self, home: Home, engine: Probe, shop: Path
    ) -> None:
        answer(engine, *CHANGED.values())
        found = refactor(home, shop, INSTRUCTION, "--apply", "--check", UNITTEST)
        assert [one["path"] for one in found["report"]["done"]] == list(sorted(CHANGED))
        assert found["applied"] is True
        assert "def total(prices, tax):" in (shop / "shop/prices.py").read_text()
        listed = home.json("edits", "list", "--json", cwd=shop)["edits"]
        assert [one["id"] for one in listed] == [found["edit"]]


class TestRounds:
    def test_a_refused_block_is_corrected_in_the_second_round(self, home: Home, engine: Probe, shop: Path) -> None:
        wrong = block("shop/cart.py", "        return total(prices)", "        return total(prices, 1)")
        texts = {**CHANGED, "shop/cart.py": wrong}
        answer(engine, *texts.values(), refused=CHANGED["shop/cart.py"])
        done = home.run("refactor", INSTRUCTION, "--apply", "--stream-json", "--check", UNITTEST, cwd=shop)
        assert done.returncode == 0, done.stderr
        events = [json.loads(line) for line in done.stdout.splitlines()]
        (refusal,) = [event for event in events if event["kind"] == "refusal"]
        assert (refusal["path"], refusal["code"]) == ("shop/cart.py", "no match")
        assert "return total(self.prices)" in refusal["message"], "the nearest lines go back to the model"
        assert [event["reason"] for event in events if event["kind"] == "round"] == [
            "the instruction",
            "refused blocks",
        ]
        report = next(event for event in events if event["kind"] == "report")
        assert report["rounds"] == 2
        assert "total(self.prices, 1)" in (shop / "shop/cart.py").read_text()
        first, second = engine.requests()[-2:]
        spoken = len(first["prompt"]) + len(first["output"]) - 1
        assert second["prompt"][: len(first["prompt"])] == first["prompt"]
        assert second["cached_tokens"] >= spoken // 128 * 128, "the second round reuses the first, answer included"

    def test_what_runs_by_itself_needs_a_word_of_its_own(self, home: Home, engine: Probe, shop: Path) -> None:
        answer(engine, *CHANGED.values(), create(".github/workflows/ci.yml", "on: push\n"))
        done = home.run("refactor", INSTRUCTION, "--apply", cwd=shop)
        assert done.returncode == 6
        assert "without being asked: .github/workflows/ci.yml" in done.stderr
        assert "--allow-self-starting" in done.stderr
        assert clean(shop)
        found = refactor(home, shop, INSTRUCTION, "--apply", "--allow-self-starting")
        assert found["applied"]
        assert (shop / ".github/workflows/ci.yml").read_text() == "on: push\n"

    def test_blocks_that_stay_wrong_leave_everything_as_it_was(self, home: Home, engine: Probe, shop: Path) -> None:
        wrong = block("shop/cart.py", "nowhere", "x")
        answer(engine, CHANGED["shop/prices.py"], wrong, CHANGED["tests/test_shop.py"], refused=wrong)
        done = home.run("refactor", INSTRUCTION, "--apply", cwd=shop)
        assert done.returncode == 6
        assert "shop/cart.py" in done.stderr
        assert "Nothing was written" in done.stderr
        assert "Round 3 of 3" in done.stderr
        assert clean(shop)

    def test_a_file_passed_over_is_asked_for_again_and_may_be_skipped(
        self, home: Home, engine: Probe, shop: Path
    ) -> None:
        answer(
            engine,
            CHANGED["shop/prices.py"],
            missing=CHANGED["tests/test_shop.py"] + "SKIP shop/cart.py: it pays elsewhere\n",
        )
        report = refactor(home, shop, INSTRUCTION, "--apply")["report"]
        assert report["outcome"] == "complete"
        assert report["skipped"] == [{"path": "shop/cart.py", "reason": "it pays elsewhere"}]
        assert [one["path"] for one in report["done"]] == ["shop/prices.py", "tests/test_shop.py"]

    def test_a_planned_file_without_a_word_keeps_the_edits_from_being_written(
        self, home: Home, engine: Probe, shop: Path
    ) -> None:
        answer(engine, CHANGED["shop/prices.py"], missing="I am done.\n")
        report = refactor(home, shop, INSTRUCTION, "--apply", code=6)["report"]
        assert report["outcome"] == "incomplete"
        assert report["missing"] == ["shop/cart.py", "tests/test_shop.py"]
        assert clean(shop)
        assert refactor(home, shop, INSTRUCTION, "--apply", "--partial")["applied"] is True
        assert not clean(shop)

    def test_an_answer_without_any_edit(self, home: Home, engine: Probe, shop: Path) -> None:
        engine.answers({"when": "make it nicer", "answer": "It is nice already.\n"})
        done = home.run("refactor", "make it nicer", "--apply", cwd=shop)
        assert done.returncode == 0
        assert "nothing to change" in done.stderr


class TestChecks:
    BROKEN = CHANGED["shop/cart.py"].replace("total(self.prices, 1)", "total(self.prices)[0]")

    def test_the_output_of_a_failing_check_goes_back_and_is_mended(self, home: Home, engine: Probe, shop: Path) -> None:
        mend = block("shop/cart.py", "        return total(self.prices)[0]", "        return total(self.prices, 1)")
        answer(engine, CHANGED["shop/prices.py"], self.BROKEN, CHANGED["tests/test_shop.py"], check=mend)
        found = refactor(home, shop, INSTRUCTION, "--apply", "--check", UNITTEST)
        assert [check["exit_code"] for check in found["checks"]] == [1, 0]
        tokenizer = load_tokenizer(Path(home.env["LAGUNA_ENGINE__MODEL"]))
        last = tokenizer.decode(engine.requests()[-1]["prompt"]).decode()
        told = last[last.rindex("<extra ") :]
        assert "missing 1 required positional argument: 'tax'" in told
        assert "exit code 1" in told
        (record, *_) = home.json("edits", "list", "--json", cwd=shop)["edits"]
        assert record["id"] == found["edit"]
        assert [one["path"] for one in record["files"]] == sorted(CHANGED), "one edit holds all rounds"
        assert home.run("undo", cwd=shop).returncode == 0
        assert clean(shop)

    def test_edits_whose_check_fails_to_the_end_are_undone(self, home: Home, engine: Probe, shop: Path) -> None:
        again = block("shop/cart.py", "        return total(self.prices)[0]", "        return total(self.prices)[1]")
        answer(engine, CHANGED["shop/prices.py"], self.BROKEN, CHANGED["tests/test_shop.py"], check=again)
        args = (INSTRUCTION, "--apply", "--check", UNITTEST, "--max-rounds", "2")
        found = refactor(home, shop, *args, code=7)
        assert found["undone"] is True
        assert found["applied"] is False
        assert [check["exit_code"] for check in found["checks"]] == [1, 1]
        assert clean(shop)
        kept = refactor(home, shop, *args, "--keep", code=7)
        assert kept["undone"] is False
        assert "[1]" in (shop / "shop/cart.py").read_text()

    def test_the_check_runs_in_the_users_environment(self, home: Home, engine: Probe, shop: Path) -> None:
        answer(engine, *CHANGED.values())
        args = (INSTRUCTION, "--apply", "--json", "--check", 'echo "$MY_OWN_VARIABLE $PWD"')
        done = home.run("refactor", *args, cwd=shop, MY_OWN_VARIABLE="mine")
        assert json.loads(done.stdout)["checks"][0]["output"] == f"mine {shop}\n"

    def test_a_command_that_the_model_proposes_is_never_run(self, home: Home, engine: Probe, shop: Path) -> None:
        trap = "```sh\ntouch ran.txt\n```\nCHECK: touch ran.txt\n--check 'touch ran.txt'\n"
        answer(engine, trap, *CHANGED.values(), trap)
        refactor(home, shop, INSTRUCTION, "--apply")
        assert not (shop / "ran.txt").exists()

    @pytest.mark.parametrize("how", ["--dry-run", "--patch=x.patch", "--json"])
    def test_a_check_needs_edits_that_are_written(self, home: Home, shop: Path, how: str) -> None:
        assert home.run("refactor", INSTRUCTION, how, "--check", "true", cwd=shop).returncode == 2


class TestOutputs:
    def test_without_apply_nothing_is_written(self, home: Home, engine: Probe, shop: Path) -> None:
        answer(engine, *CHANGED.values())
        done = home.run("refactor", INSTRUCTION, cwd=shop)
        assert done.returncode == 0
        assert "-def total(prices):\n+def total(prices, tax):\n" in done.stdout
        assert "3 files: 3 changed" in done.stdout
        assert clean(shop)

    def test_a_patch_applies_with_git(self, home: Home, engine: Probe, shop: Path, tmp_path: Path) -> None:
        answer(engine, *CHANGED.values(), create("docs/taxes and more.md", "Taxes.\n"))
        target = tmp_path / "out.patch"
        assert home.run("refactor", INSTRUCTION, "--patch", str(target), cwd=shop).returncode == 0
        assert clean(shop)
        git(shop, "apply", "--index", str(target))
        assert git(shop, "diff", "--cached", "--name-only").split("\n")[0] == "docs/taxes and more.md"
        assert "tax" in (shop / "shop/prices.py").read_text()

    def test_a_patch_on_standard_output_is_all_there_is(self, home: Home, engine: Probe, shop: Path) -> None:
        answer(engine, *CHANGED.values())
        done = home.run("refactor", INSTRUCTION, "--patch", "-", cwd=shop)
        assert done.stdout.startswith("diff --git a/shop/cart.py b/shop/cart.py\n")
        (shop / "made.patch").write_text(done.stdout)
        git(shop, "apply", "made.patch")
        assert "def total(prices, tax):" in (shop / "shop/prices.py").read_text()

    def test_a_dirty_tree_is_fine_and_said(self, home: Home, engine: Probe, shop: Path) -> None:
        before = "# mine\n" + SHOP["shop/prices.py"]
        (shop / "shop/prices.py").write_text(before)
        (shop / "notes.txt").write_text("mine\n")
        answer(engine, *CHANGED.values())
        report = refactor(home, shop, INSTRUCTION, "--apply")["report"]
        assert report["dirty"] == ["shop/prices.py"]
        assert (shop / "shop/prices.py").read_text().startswith("# mine\n")
        assert home.run("undo", cwd=shop).returncode == 0
        assert (shop / "shop/prices.py").read_text() == before

    def test_paths_limit_what_may_be_touched(self, home: Home, engine: Probe, shop: Path) -> None:
        answer(engine, *CHANGED.values(), refused="SKIP tests/test_shop.py: out of bounds\n")
        found = refactor(home, shop, INSTRUCTION, "--apply", "--paths", "shop/")
        assert [one["path"] for one in found["plan"]["files"]] == ["shop/cart.py", "shop/prices.py"]
        assert git(shop, "status", "--porcelain").split() == ["M", "shop/cart.py", "M", "shop/prices.py"]
        assert home.run("refactor", INSTRUCTION, "--paths", "nowhere/", cwd=shop).returncode == 2

    def test_a_file_that_changes_between_question_and_answer_is_left_alone(self, make_home: Any, shop: Path) -> None:
        home = make_home("--decode-speed", "60")
        home.json("start", "--wait", "--json")
        engine = Probe(home.runtime / "engine.sock")
        answer(engine, *CHANGED.values(), refused="No.\n")
        working = home.popen("refactor", INSTRUCTION, "--apply", "--max-rounds", "1", cwd=shop)
        from support.daemon import until

        until(lambda: engine.running() == 1)
        (shop / "shop/prices.py").write_text("changed meanwhile\n")
        _, said = working.communicate(timeout=60)
        assert working.returncode == 6
        assert b"shop/prices.py" in said
        assert (shop / "shop/prices.py").read_text() == "changed meanwhile\n"
        assert git(shop, "status", "--porcelain").split() == ["M", "shop/prices.py"]

    def test_a_secret_is_never_overwritten_by_its_marker(self, home: Home, engine: Probe, shop: Path) -> None:
        secret = 'KEY = "AKIA' + "QWERTYUIOPASDFGH" + '"\nNAME = "total"\n'
        (shop / "shop/keys.py").write_text(secret)
        commit(shop, "keys")
        marker = block("shop/keys.py", 'KEY = "[redacted: aws]"', 'KEY = "[redacted: aws]" + ""')
        engine.answers({"when": "tidy the keys", "answer": marker})
        done = home.run("refactor", "tidy the keys", "--apply", "--max-rounds", "1", cwd=shop)
        assert done.returncode == 6
        assert (shop / "shop/keys.py").read_text() == secret


class TestBadInput:
    @pytest.mark.parametrize("args", [("",), ("x", "--apply", "--dry-run"), ("x", "--json", "--stream-json")])
    def test_usage(self, home: Home, shop: Path, args: tuple[str, ...]) -> None:
        assert home.run("refactor", *args, cwd=shop).returncode == 2

    def test_no_repository(self, home: Home) -> None:
        assert home.run("refactor", "x").returncode == 3

    def test_an_instruction_larger_than_the_context(self, home: Home, engine: Probe, shop: Path) -> None:
        assert home.run("refactor", input="word " * 40_000, cwd=shop).returncode == 5
