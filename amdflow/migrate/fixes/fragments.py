"""Files that may be included where no header must be, in a namespace: what includes them brings their headers along."""

from __future__ import annotations

import re
from collections.abc import Mapping

from amdflow.migrate.compat import include_path
from amdflow.migrate.fixes import Change, Draft, Fix, FixContext, insert_include
from amdflow.migrate.fixes.compat_headers import use_compat_headers
from amdflow.migrate.fixes.cub_warps import write_out_warp_widths
from amdflow.migrate.fixes.inline_ptx import rewrite_ptx
from amdflow.migrate.fixes.logical_warps import use_logical_warps
from amdflow.migrate.lexer import includes

_FIXES: tuple[Fix, ...] = (rewrite_ptx, use_compat_headers, use_logical_warps, write_out_warp_widths)
"""Those that include headers of the library."""
_GUARD = re.compile(
    r"^[ \t]*#[ \t]*(?:pragma[ \t]+once|ifndef[ \t]+(\w+)\s*\n\s*#[ \t]*define[ \t]+\1\b)", re.MULTILINE
)


def needs_of_fragments(
    texts: Mapping[str, str], resolved: Mapping[str, Mapping[str, str]], context: FixContext
) -> dict[str, frozenset[str]]:
    """Compatibility headers that files have to include for the fragments that they include (``FixContext.fragment_needs``).

    A fragment is a file without a guard and without ``<>`` includes. ``resolved`` has each file's includes: path as
    written -> file of the tree.
    """
    includers: dict[str, list[str]] = {}
    for name, paths in resolved.items():
        for included in dict.fromkeys(paths.values()):
            includers.setdefault(included, []).append(name)
    needs: dict[str, frozenset[str]] = {}
    pending = []
    for name in includers:
        if name in texts and _is_fragment(texts[name]):
            draft = Draft(name, texts[name], False, context)
            headers = frozenset(header for fix in _FIXES for header in fix(draft).compat)
            pending += [(name, headers)] if headers else []
    while pending:
        fragment, headers = pending.pop()
        for name in includers.get(fragment, ()):
            known = needs.get(name, frozenset())
            if not headers <= known:
                needs[name] = known | headers
                if _is_fragment(texts.get(name, "")):
                    pending.append((name, headers))
    return needs


def bring_fragment_headers(draft: Draft) -> Change:
    """Include what fragments need before the first include that may be one."""
    text, needs = draft.text, draft.context.fragment_needs.get(draft.name, frozenset())
    if not needs:
        return Change(text)
    first = next((text.rfind("\n", 0, found.start) + 1 for found in includes(text) if found.quoted), None)
    directives = [f'#include "{include_path(draft.name, header)}"' for header in sorted(needs)]
    while first is not None and text.startswith(tuple(directives), first):
        first = text.find("\n", first) + 1
    missing = [directive for directive in directives if directive not in text[:first]]
    return Change(insert_include(text, *missing, before=first) if missing else text, (), needs)


def _is_fragment(text: str) -> bool:
    return not (_GUARD.search(text) or any(not found.quoted for found in includes(text)))
