"""Which files know waves of 64 lanes already: their warps are their own business, and that of all they share headers with."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping

from amdflow.migrate.lexer import CONDITIONAL

_WARP = re.compile(
    r"\b__(?:shfl|ballot|any(?:_sync)?\b|all(?:_sync)?\b|activemask|match_|reduce_\w+_sync|syncwarp)"
    r"|[wW]arp_?[sS]ize|WARP_?SIZE|[wW]ave(?:front)?_?[sS]ize|WAVE(?:FRONT)?_?SIZE"
)
_HINTS = (
    "__shfl",
    "__ballot",
    "__any",
    "__all",
    "__activemask",
    "__match_",
    "__reduce_",
    "_sync",
    "__syncwarp",
    "warp",
    "Warp",
    "WARP",
    "wave",
    "Wave",
    "WAVE",
)
"""Parts of the names above and below, for a first look that costs little."""
_HIP_HINTS = ("HIP", "HCC", "ROCM", "AMD", "gfx", "hip/")
_HIP_NAME = r"(?:\w*_)?(?:HIP|HIPCC|HCC|ROCM|AMDGCN|AMDGPU|AMD|gfx\d\w*)(?:_\w*)?"
_HIP = re.compile(rf"\b{_HIP_NAME}\b")
_EITHER = re.compile(r"\b\w*(?:CUDA|NVCC|NVIDIA)\w*\b")
_WIDE = re.compile(
    r"(?:[wW]arp|[wW]ave(?:front)?|WARP|WAVE(?:FRONT)?)_?(?:[sS]ize|SIZE|[wW]idth|WIDTH)\w*\s*[=({\s]\s*64\b"
    r"|\b__ballot64\b|\bC10_WARP_SIZE\b|\b__AMDGCN_WAVEFRONT_SIZE\w*|_sync\s*\(\s*(?:0[xX][fF]{16}|~\s*0[uU]?[lL]{2}[uU]?)"
)
_PYTORCH = re.compile(r"\bWARP_(?:SHFL\w*|BALLOT|ANY|ALL)\b")
"""PyTorch's warp functions, as wide as the hardware's waves, where the tree has no macro of its own that is called so."""
_OWN_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(WARP_\w+)", re.MULTILINE)
_HIP_HEADER = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]hip/', re.MULTILINE)


def wave_aware_files(
    texts: Mapping[str, str], mask: Callable[[str], str], closure: Callable[[str], Iterable[str]]
) -> frozenset[str]:
    """Names of those files. ``closure`` gives a file and all that it includes.

    A file tells by itself (a branch for HIP that is about warps, a warp size of 64, HIP's own headers); one that shares
    warp code with such a file through includes has to go with it, since both must agree on the width.
    """
    hinted = {name: text for name, text in texts.items() if any(hint in text for hint in _HINTS)}
    own = {name for text in hinted.values() if "WARP_" in text for name in _OWN_MACRO.findall(text)}
    telling = {name for name, text in hinted.items() if _tells(text, mask, own)}
    if not telling:
        return frozenset()
    concerned = [name for name, text in hinted.items() if name in telling or _WARP.search(text)]
    groups = {name: name for name in concerned}

    def root(name: str) -> str:
        while groups[name] != name:
            groups[name] = name = groups[groups[name]]
        return name

    for name in concerned:
        for included in closure(name):
            if included in groups:
                groups[root(included)] = root(name)
    aware = {root(name) for name in telling}
    return frozenset(name for name in concerned if root(name) in aware)


def _tells(text: str, mask: Callable[[str], str], own: Collection[str]) -> bool:
    pytorch = set(_PYTORCH.findall(text)).difference(own) if "WARP_" in text else set()
    if not (pytorch or _WIDE.search(text) or any(hint in text for hint in _HIP_HINTS)):
        return False
    masked = mask(text)
    if pytorch.intersection(_PYTORCH.findall(masked)):
        return True
    return bool(_WIDE.search(masked) or (_HIP_HEADER.search(text) and _WARP.search(masked)) or _has_hip_branch(masked))


def _has_hip_branch(masked: str) -> bool:
    """Whether a conditional that asks for HIP holds something about warps, in whichever branch."""
    open_blocks: list[tuple[int, bool]] = []
    for match in CONDITIONAL.finditer(masked):
        kind, condition = match.groups()
        if kind in ("if", "ifdef", "ifndef"):
            open_blocks.append((match.end(), asks_for_hip(condition)))
        elif kind == "elif" and open_blocks:
            start, asks = open_blocks[-1]
            open_blocks[-1] = (start, asks or asks_for_hip(condition))
        elif kind == "endif" and open_blocks:
            start, asks = open_blocks.pop()
            if asks and _WARP.search(masked, start, match.start()):
                return True
    return False


def asks_for_hip(condition: str) -> bool:
    """A condition that holds for CUDA as well (``CUDA || HIP``) asks for nothing."""
    if not _HIP.search(condition):
        return False
    return not ("||" in condition and "&&" not in condition and _EITHER.search(condition))
