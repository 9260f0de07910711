"""What the site shows beside docs/: the files of the repository's root, and a page of the API for every room.

MkDocs calls the functions named `on_…` (mkdocs.yml lists this file as a hook). Links are written as they lead in
the repository; here they are turned to where the same thing stands in the site.
"""

from __future__ import annotations

import ast
import json
import posixpath
import re
from html import unescape
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"

AT_ROOT = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contribute.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
"""Files of the repository's root, and their pages."""

LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    pages = {page: (ROOT / name).read_text(encoding="utf-8") for name, page in AT_ROOT.items()}
    rooms = _rooms()
    pages |= {f"api/{room}.md": _room_page(room) for room in rooms}
    pages["api/index.md"] = _surface_page(rooms)
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    _add_rooms(config, rooms)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    source = next((name for name, path in AT_ROOT.items() if path == page.file.src_uri), None)
    place = source or f"docs/{page.file.src_uri}"
    here = posixpath.dirname(page.file.src_uri)

    def led(found: re.Match[str]) -> str:
        text, target = found[1], found[2]
        if re.match(r"[a-z]+:|#", target):
            return found[0]
        path, _, anchor = target.partition("#")
        there = _in_site(posixpath.normpath(posixpath.join(posixpath.dirname(place), path)), anchor)
        return f"[{text}]({posixpath.relpath(there, here or '.')})" if there else text

    if page.file.src_uri.startswith("api/"):
        return markdown
    parts = FENCE.split(markdown)  # code stands at the odd places
    return "".join(part if i % 2 else LINK.sub(led, part) for i, part in enumerate(parts))


def _in_site(path: str, anchor: str) -> str:
    """Where a file of the repository stands in the site; empty where it does not."""
    if not (ROOT / path).exists():
        raise FileNotFoundError(f"a link leads to {path}, which is not there")
    hash_ = f"#{anchor}" if anchor else ""
    if path in AT_ROOT:
        return AT_ROOT[path] + hash_
    if path.startswith("docs/") and path.endswith((".md", ".svg", ".png")):
        return path.removeprefix("docs/") + hash_
    if path.startswith("src/"):
        module = path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        return f"api/{_room_of(module)}.md#{anchor or module}"
    return ""


# ---- search

_sections: list[tuple[str, str, str, str]] = []
"""Address, page, title and text of every section of the site."""


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    for part in re.split(r"(?=<h[1-5] id=)", html):
        head = re.match(r'<h\d id="([^"]+)"[^>]*>(.*?)</h\d>', part, re.DOTALL)
        address = f"{page.file.url}#{head[1]}" if head else page.file.url
        name = _plain(head[2]) if head else str(page.title)
        text = _plain(part[head.end() :] if head else part)
        if head or text:
            _sections.append((address, _plain(str(page.title)), name, text))
    return html


def on_post_build(config: MkDocsConfig) -> None:
    index = f"const SECTIONS = {json.dumps(_sections, ensure_ascii=False, separators=(',', ':'))};\n"
    (Path(config.site_dir) / "search-index.js").write_text(index, encoding="utf-8")
    _sections.clear()


def _plain(html: str) -> str:
    without = re.sub(r"<a [^>]*headerlink.*?</a>|<[^>]+>", " ", html, flags=re.DOTALL)
    return " ".join(unescape(without).split())


# ---- the API


def _rooms() -> list[str]:
    """The packages that have a page: those of the core, and its guests."""
    core = sorted(path.parent.name for path in (SRC / "understudy").glob("*/__init__.py"))
    guests = sorted(path.parent.name for path in SRC.glob("understudy_*/__init__.py"))
    return [*(f"understudy.{name}" for name in core), *guests, "understudy"]


def _room_of(module: str) -> str:
    parts = module.split(".")
    nested = len(parts) > 1 and parts[0] == "understudy" and (SRC / "understudy" / parts[1]).is_dir()
    return f"understudy.{parts[1]}" if nested else parts[0]


def _modules(room: str) -> list[str]:
    folder = SRC / room.replace(".", "/")
    files = folder.glob("*.py") if room == "understudy" else folder.rglob("*.py")
    names = (".".join(file.relative_to(SRC).with_suffix("").parts) for file in sorted(files))
    return [name for name in names if not name.endswith("__init__") or name.count(".") > room.count(".") + 1]


def _room_page(room: str) -> str:
    alone = "{show_root_heading: false, show_root_toc_entry: false, members: []}"
    head = f"# {room}\n\n::: {room}\n    options: {alone}\n"
    modules = [name.removesuffix(".__init__") for name in _modules(room)]
    return head + "".join(f"\n::: {module}\n{_options(module)}" for module in modules)


def _options(module: str) -> str:
    """A package within a room shows its docstring; its modules follow it by themselves."""
    package = (SRC / module.replace(".", "/")).is_dir()
    return "    options: {members: []}\n" if package else ""


def _surface_page(rooms: list[str]) -> str:
    """The names of `understudy.__all__`, each leading to where it is described."""
    tree = ast.parse((SRC / "understudy" / "__init__.py").read_text(encoding="utf-8"))
    homes: dict[str, str] = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_HOME"
    )
    lines = [
        "# API reference",
        "",
        "## The public surface",
        "",
        "`import understudy as us` gives these names.",
        "",
    ]
    lines += ["| name | what it is |", "|---|---|"]
    for name, home in sorted(homes.items(), key=lambda item: item[0].lower()):
        module, attribute = home.split(":")
        link = f"{_room_of(module)}.md#{module}.{attribute}".rstrip(".")  # some names are modules
        lines.append(f"| [`us.{name}`]({link}) | {_summary(module, attribute)} |")
    lines += ["", "## The rooms", "", "| package | what it is for |", "|---|---|"]
    for room in rooms:
        lines.append(f"| [`{room}`]({room}.md) | {_summary(room, '')} |")
    return "\n".join(lines) + "\n"


def _summary(module: str, attribute: str) -> str:
    """The first paragraph of a docstring."""
    path = SRC / module.replace(".", "/")
    if attribute and (path / f"{attribute}.py").exists():  # a public name that is a module
        return _summary(f"{module}.{attribute}", "")
    tree: ast.AST = ast.parse(
        (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text("utf-8")
    )
    if attribute:
        tree = next(node for node in ast.iter_child_nodes(tree) if getattr(node, "name", "") == attribute)
    told = ast.get_docstring(tree) if isinstance(tree, ast.Module | ast.ClassDef | ast.FunctionDef) else None
    return " ".join((told or "").split("\n\n")[0].split()).replace("|", "\\|")


def _add_rooms(config: MkDocsConfig, rooms: list[str]) -> None:
    for entry in config.nav or []:
        if entry.get("API reference"):
            named = [{room.removeprefix("understudy."): f"api/{room}.md"} for room in rooms]
            entry["API reference"] = [{"The public surface": "api/index.md"}, *named]
