"""Inline PTX is read whole or left alone whole."""

from __future__ import annotations

import pytest

from amdflow.content import shipped
from amdflow.migrate.fixes import Change, Draft, FixContext
from amdflow.migrate.fixes.inline_ptx import DIFFERS, RULE, STAGED_COPY, rewrite_ptx
from amdflow.migrate.ptx.pages import ptx_page
from amdflow.migrate.ptx.statement import NotUnderstood, asm_statements
from amdflow.migrate.ptx.translate import translate


def rewritten(text: str, *, native: bool = False, name: str = "a/b.cu") -> Change:
    return rewrite_ptx(Draft(name, text, True, FixContext(native_warps=native)))


def code(statement: str) -> str:
    """What one asm statement becomes."""
    (found,) = asm_statements(statement)
    return translate(found).code


def why(statement: str) -> str:
    """Why one is left alone."""
    (found,) = asm_statements(statement)
    with pytest.raises(NotUnderstood) as raised:
        translate(found)
    return str(raised.value)


@pytest.mark.parametrize("written", ["[%1+-8]", "[%1 + -8]", "[%1-8]", "[ %1 + -8 ]"])
def test_addresses_below_the_base(written: str) -> None:
    statement = f'asm("ld.global.u32 %0, {written};" : "=r"(v) : "l"(p))'
    assert "load<unsigned int>(amdflow::ptx::at(p, -8))" in code(statement)
    assert "at(p, 8)" in code(statement.replace("+-", "+").replace("-", "+").replace("+ +", "+"))


def test_the_ptx_stays_beside_its_meaning_and_lines_stay() -> None:
    before = '#include <x.h>\n__device__ void f(int* p) {\n  int r;\n  asm volatile("ld.global.nc.s32 %0, [%1];"\n    : "=r"(r) : "l"(p));\n}\n'
    change = rewritten(before)
    assert change.text.startswith('#include <x.h>\n#include "../amdflow_compat/ptx.h"\n')
    assert (
        'AMDFLOW_PTX(asm volatile("ld.global.nc.s32 %0, [%1];"\n    : "=r"(r) : "l"(p)), amdflow::ptx::set(r, amdflow::ptx::load<int>(p)));'
        in change.text
    )
    assert change.text.count("\n") == before.count("\n") + 1
    assert [(done.rule, done.line) for done in change.applied] == [(RULE, 4)]
    assert change.compat == {"ptx.h"}


def test_a_second_run_changes_nothing() -> None:
    once = rewritten('void f(int r) { asm("brev.b32 %0, %0;" : "+r"(r)); }\n')
    assert rewritten(once.text) == Change(once.text)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ('asm("add.u32 %0, %0, 1; mma.sync.aligned.m8n8k4 %0, %0;" : "+r"(a))', "mma.sync.aligned.m8n8k4"),
        ('asm("addc.u32 %0, %1, 0;" : "=r"(a) : "r"(b))', "carry of another asm statement"),
        ('asm("add.cc.u32 %0, %1, 0;" : "=r"(a) : "r"(b))', "leaves its carry"),
        ('asm("bar.sync 1, 64;")', "a named barrier or one for part of the block"),
        ('asm("L: bra L;")', "a label"),
        ('asm("exit;")', "from within a function"),
        ('asm("ld.global.u32 %0, " ADDRESS ";" : "=r"(a) : "l"(b))', "macros"),
        ('asm("mov.b32 %0, %1;" : "=r"(a) : "m"(b))', 'constraint "m"'),
        ('asm goto("trap;" : : : : out)', "jumps to labels"),
        ('asm("fma.rz.f64 %0, %1, %1, %1;" : "=d"(a) : "d"(b))', "no equivalent"),
        ('asm("ld.global.mystery.u32 %0, [%1];" : "=r"(a) : "l"(b))', "the modifier .mystery"),
        ('asm("mov.u32 %0, %%gridid;" : "=r"(a))', "the special register %gridid"),
    ],
)
def test_what_is_not_understood_is_named(statement: str, reason: str) -> None:
    assert reason in why(statement)
    text = f"__device__ void f() {{ {statement}; }}\n"
    assert rewritten(text) == Change(text)


@pytest.mark.parametrize(
    "statement",
    ['asm volatile("" ::: "memory")', 'asm("rdtsc" : "=a"(lo), "=d"(hi))', 'asm("mfence")', 'asm volatile("pause")'],
)
def test_assembly_of_the_host_stays(statement: str) -> None:
    text = f"static void f() {{ {statement}; }}\n"
    assert rewritten(text) == Change(text)


def test_comments_and_strings_stay() -> None:
    text = '// asm("trap;");\nconst char* s = "asm(\\"trap;\\");";\n'
    assert rewritten(text) == Change(text)


def test_operands_without_commas_between_are_told_apart() -> None:
    assert code('asm("st.global.u8 [%1], %0;" :: "r"(v) "l"(p))') == "amdflow::ptx::store<unsigned char>(p, v)"


def test_named_operands_and_macro_bodies() -> None:
    text = '#define ADD(r, a) \\\n  asm("add.s32 %[o], %[a], 1;" \\\n      : [o] "=r"(r) : [a] "r"(a))\n'
    change = rewritten(text)
    assert "amdflow::ptx::set(r, amdflow::ptx::int_add<int>(a, 1)))\n" in change.text
    assert change.text.count("\\\n") == 2


def test_an_expression_with_effects_is_evaluated_once() -> None:
    once = code('asm("mul.lo.u32 %0, %1, %1;" : "=r"(*out++) : "r"(next()))')
    assert once.count("next()") == 1
    assert once.count("*out++") == 1


def test_a_register_hides_one_of_an_outer_scope() -> None:
    written = code('asm("{ .reg .u32 t; mov.u32 t, 1; { .reg .u32 t; mov.u32 t, 2; } mov.u32 %0, t; }" : "=r"(r))')
    assert "ptx_t = 1; ptx_t_ = 2; ptx_0 = ptx_t;" in written


def test_the_clobber_keeps_the_compiler_from_moving_accesses() -> None:
    fenced = code('asm volatile("st.global.u32 [%0], %1;" :: "l"(p), "r"(v) : "memory")')
    assert fenced.count("amdflow::ptx::compiler_barrier();") == 2


def test_order_and_scope_are_kept() -> None:
    assert "__ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT" in code(
        'asm("ld.acquire.gpu.u32 %0, [%1];" : "=r"(v) : "l"(p))'
    )
    assert "__ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM" in code(
        'asm("st.release.sys.u32 [%0], %1;" :: "l"(p), "r"(v))'
    )
    assert "__ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT" in code('asm("red.global.add.u32 [%0], %1;" :: "l"(p), "r"(v))')


def test_native_warps_leave_lanes_to_a_person() -> None:
    lanes = 'void f() { asm("mov.u32 %0, %%laneid;" : "=r"(a)); asm("popc.b32 %0, %0;" : "+r"(a)); }\n'
    change = rewritten(lanes, native=True)
    assert change.text.count("AMDFLOW_PTX(") == 1
    assert "lane_id" not in change.text
    assert "amdflow::lane_id()" in rewritten(lanes).text


def test_files_that_know_wide_waves_are_treated_like_native_ones() -> None:
    lanes = 'void f() { asm("mov.u32 %0, %%laneid;" : "=r"(a)); }\n'
    context = FixContext(wave_aware=frozenset({"b.cu"}))
    assert rewrite_ptx(Draft("b.cu", lanes, True, context)) == Change(lanes)


def test_exit_is_a_return_in_a_kernel_only() -> None:
    text = '__global__ void k() { asm("exit;"); }\n__device__ void f() { asm("exit;"); }\n'
    assert rewritten(text).text.count("AMDFLOW_PTX") == 1
    assert '__global__ void k() { AMDFLOW_PTX(asm("exit;"), return); }' in rewritten(text).text


def test_costs_and_differences_are_findings_of_their_own() -> None:
    text = 'void f() {\n  asm("cp.async.ca.shared.global [%0], [%1], 8;" :: "r"(s), "l"(g));\n  asm("ex2.approx.f32 %0, %0;" : "+f"(x));\n}\n'
    found = {(done.rule, done.line) for done in rewritten(text).applied}
    assert {(STAGED_COPY, 2), (DIFFERS, 3)} <= found


def test_the_reference_page_is_up_to_date() -> None:
    page = shipped("docs") / "reference" / "ptx.md"
    assert page.read_text(encoding="utf-8") == ptx_page(), (
        "run: python -m amdflow.migrate.ptx.pages > docs/reference/ptx.md"
    )
