"""The inspector's scripts: typed, free of each other's names, and all of them in the page."""

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import regard.inspection
from regard.inspection.inspector import SCRIPTS, inspector_page

WEB = Path(regard.inspection.__file__).parent / "web"
_TYPESCRIPT = "7.0.2"


def test_every_script_is_in_the_page_after_those_it_imports_from() -> None:
    assert sorted(SCRIPTS) == sorted(path.name for path in WEB.glob("*.js"))
    before: set[str] = set()
    for name in SCRIPTS:
        imported = set(re.findall(r'from "\./([\w]+\.js)"', (WEB / name).read_text(encoding="utf-8")))
        assert imported <= before, name
        before.add(name)


def test_joined_scripts_share_one_scope_without_a_clash() -> None:
    names = Counter[str]()
    for name in SCRIPTS:
        text = (WEB / name).read_text(encoding="utf-8")
        names.update(
            re.findall(r"^(?:export )?(?:async )?(?:function|class|const|let) (\w+)", text, re.MULTILINE)
        )
        assert " as " not in "".join(re.findall(r"^import .*?;$", text, re.MULTILINE | re.DOTALL)), name
    assert [name for name, count in names.items() if count > 1] == []


def test_a_page_fetches_nothing_and_a_served_one_only_from_its_server() -> None:
    kept, served = (inspector_page("x", {"mode": "file", "runs": []}, served=one) for one in (False, True))
    assert "default-src 'none'" in kept
    assert "connect-src" not in kept
    assert "connect-src 'self'" in served
    assert "import " not in re.sub(
        r"import\(\"\./", "", kept.split('<script type="module">')[1].split("/**")[0]
    )


def _compiler(folder: Path) -> list[str]:
    if found := shutil.which("tsc"):
        return [found]
    if not os.environ.get("CI"):
        pytest.skip("no tsc on PATH: install typescript to check the types of the inspector's scripts")
    if not shutil.which("npm"):
        pytest.skip("CI has no npm to install typescript with")
    subprocess.run(["npm", "install", "--silent", f"typescript@{_TYPESCRIPT}"], cwd=folder, check=True)
    return [str(folder / "node_modules" / ".bin" / "tsc")]


def test_scripts_keep_to_their_types(tmp_path: Path) -> None:
    compiler = _compiler(tmp_path)
    options = {"allowJs": True, "checkJs": True, "noEmit": True, "strict": True, "types": []}
    options |= {"target": "es2023", "module": "es2022", "moduleResolution": "bundler"}
    options |= {"lib": ["es2023", "dom", "dom.iterable"]}
    (tmp_path / "tsconfig.json").write_text(
        json.dumps({"compilerOptions": options, "include": [f"{WEB}/*.js"]})
    )
    done = subprocess.run([*compiler, "-p", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
