"""The test program of one function: inputs at the top, a reference that is the user's to write, the call, the comparison."""

from __future__ import annotations

import re
from dataclasses import dataclass

from amdflow.migrate.scaffold.launches import Launch
from amdflow.migrate.scaffold.signature import Parameter, Signature, TemplateParameter, Where

CODE_NAME, SUPPORT_NAME = "code_under_test.hpp", "scaffold.hpp"
_THREADS, _ELEMENTS = 256, 65_536
_INTEGER = re.compile(
    r"(?:(?:un)?signed\s*)?(?:(?:std::)?(?:size_t|ptrdiff_t|u?int\d+_t)|uint|(?:long\s*)*int|long(?: long)?|short|unsigned|char|unsigned char)"
)
_FLOAT = re.compile(r"(?:float|double|__half|half|_Float16|__hip_bfloat16|hip_bfloat16)")
_FUNCTOR = re.compile(r"f|fn|func|.*op|.*functor|.*(?:compare|reducer|function|predicate)", re.IGNORECASE)
_GROUPS = (
    (
        re.compile(r"thread_block_tile<\s*(\w+)"),
        r"cooperative_groups::tiled_partition<\1>(cooperative_groups::this_thread_block())",
    ),
    (re.compile(r"\bthread_block\b"), "cooperative_groups::this_thread_block()"),
    (re.compile(r"\bgrid_group\b"), "cooperative_groups::this_grid()"),
    (re.compile(r"\bcoalesced_group\b"), "cooperative_groups::coalesced_threads()"),
)


@dataclass(frozen=True)
class _Argument:
    """How one parameter is passed. ``buffer`` is its element type, empty when no memory is needed."""

    parameter: Parameter
    buffer: str = ""
    value: str = ""

    @property
    def name(self) -> str:
        return self.parameter.name

    @property
    def is_output(self) -> bool:
        return (
            bool(self.buffer)
            and not self.parameter.is_const
            and (self.parameter.is_pointer or self.parameter.is_reference)
        )


def program(signature: Signature, launch: Launch | None, scopes: tuple[str, ...], head: str, text: str) -> str:
    """The ``.hip`` file. ``text`` is the function's own, ``head`` the comment at the top."""
    writer = _Program(signature, launch, text)
    body = writer.by_hand() if signature.obstacle else writer.whole()
    named = [re.sub(r"^\s*(?:inline\s+)?namespace\s+|\s*\{$", "", scope) for scope in scopes if "namespace" in scope]
    path = "::".join(name for name in named if name and name != "namespace")
    opened = "\n".join([*(scope for scope in scopes if "namespace" in scope), "namespace scaffold_test {"])
    closed = "\n".join(["}  // namespace scaffold_test", *["}"] * (opened.count("{") - 1)])
    return (
        f'{head}#include "{CODE_NAME}"\n#include "{SUPPORT_NAME}"\n\n{opened}\n\n{body}\n{closed}\n\n'
        f"int main() {{ return {path + '::' if path else ''}scaffold_test::run(); }}\n"
    )


class _Program:
    def __init__(self, signature: Signature, launch: Launch | None, text: str) -> None:
        self.signature, self.launch, self.text = signature, launch, text
        self.arguments = [self._argument(parameter) for parameter in signature.parameters]

    def _argument(self, parameter: Parameter) -> _Argument:
        element = "unsigned char" if parameter.type == "void" else parameter.type
        if parameter.is_pointer:
            return _Argument(parameter, element)
        groups = (match.expand(value) for pattern, value in _GROUPS if (match := pattern.search(parameter.type)))
        group = next(groups, "")
        if group and self.signature.where is not Where.KERNEL:
            return _Argument(parameter, "", group)
        if self.signature.where is Where.DEVICE:
            return _Argument(parameter, element)
        return _Argument(parameter, "", parameter.name)

    def by_hand(self) -> str:
        """Where no call can be made up: the function is here, the call is the user's."""
        return (
            f"// No call could be written by rule: {self.signature.obstacle}.\n// Call {self.signature.name}() here with inputs of your own, and compare.\n"
            f'int run() {{ SCAFFOLD_NOT_WRITTEN("the call of {self.signature.name}()"); }}\n'
        )

    def whole(self) -> str:
        call = {Where.KERNEL: self._launch, Where.DEVICE: self._each, Where.HOST: self._plain}[self.signature.where]
        before, inside = call()
        parts = [
            "// ---- 1. Inputs: fill in what the function is used with",
            *self._templates(),
            *self._inputs(),
            "constexpr double tolerance = 1e-5;  // of max(1, |expected|); integers must be equal\n",
            "// ---- 2. What it should compute: write this, in plain C++",
            f"// Pointers lead to copies of the inputs; write the results into those that are not const.{self._each_note()}",
            f"void reference({self._reference_parameters()}) {{",
            f'  SCAFFOLD_NOT_WRITTEN("reference() of {self.signature.name}()");',
            "}\n",
            f"// ---- 3. The test{before}",
            "int run() {",
            *(
                f'  amdflow_scaffold::Buffer<{item.buffer}> {item.name}("{item.name}", {item.name}_elements);'
                for item in self._buffers()
            ),
            f"  reference({', '.join(self._reference_argument(item) for item in self._listed())});",
            *inside,
            "  std::size_t wrong = 0;",
            *(
                f"  {item.name}.to_host();\n  wrong += {item.name}.differences(tolerance);"
                for item in self._buffers()
                if item.is_output
            ),
            '  std::puts(wrong ? "FAILED" : "PASSED");',
            "  return wrong ? 1 : 0;",
            "}\n",
        ]
        return "\n".join(parts)

    def _result(self) -> list[_Argument]:
        returns = self.signature.returns
        if self.signature.where is Where.KERNEL or returns in ("void", ""):
            return []
        if self.signature.where is Where.HOST and not (
            _INTEGER.fullmatch(returns) or _FLOAT.fullmatch(returns) or returns == "bool"
        ):
            return []
        known = returns if returns != "auto" else "float"
        return [_Argument(Parameter("result", known, is_pointer=True), known)]

    def _buffers(self) -> list[_Argument]:
        return [item for item in self.arguments if item.buffer] + self._result()

    def _listed(self) -> list[_Argument]:
        return [item for item in self.arguments if item.buffer or item.value == item.name] + self._result()

    def _templates(self) -> list[str]:
        given = self.launch.templates if self.launch else ()
        lines = []
        for index, parameter in enumerate(self.signature.templates):
            value = given[index] if index < len(given) and _is_constant(given[index]) else self._placeholder(parameter)
            note = (
                "template argument, as launched"
                if index < len(given) and value == given[index]
                else "template argument: fill in"
            )
            lines.append(
                f"constexpr {parameter.type} {parameter.name} = {value};  // {note}"
                if parameter.type
                else f"using {parameter.name} = {value};  // {note}"
            )
        return lines

    def _placeholder(self, parameter: TemplateParameter) -> str:
        if parameter.type:
            return "true" if parameter.type == "bool" else "32" if _INTEGER.fullmatch(parameter.type) else "{}"
        passed = [item.name for item in self.signature.parameters if item.type == parameter.name]
        called = any(re.search(rf"\b{re.escape(name)}\s*\(", self.text) for name in passed)
        made = re.search(rf"\b{re.escape(parameter.name)}\s*(?:\(\s*\)|\{{\s*\}})\s*\(", self.text)
        return (
            "amdflow_scaffold::Plus"
            if called or made or any(map(_FUNCTOR.fullmatch, (parameter.name, *passed)))
            else "float"
        )

    def _inputs(self) -> list[str]:
        lines = []
        for item in self._buffers():
            per_thread = self.signature.where is Where.DEVICE and not (
                item.parameter.is_pointer and item in self.arguments
            )
            count = "threads" if per_thread else "1" if item.name == "result" else f"{_ELEMENTS}"
            lines.append(
                f"constexpr std::size_t {item.name}_elements = {count};  // of {item.buffer}{', one for each thread' if per_thread else ''}"
            )
        if self.signature.where is Where.DEVICE:
            lines.insert(
                0,
                f"constexpr unsigned threads = {_THREADS};  // in one block; whole waves, so that lanes can talk to each other",
            )
        lines += [
            f"{item.parameter.type} {item.name}{self._value(item.parameter)};"
            for item in self.arguments
            if item.value == item.name
        ]
        return [*lines, *self._geometry()] if self.signature.where is Where.KERNEL else lines

    def _value(self, parameter: Parameter) -> str:
        types = {item.name for item in self.signature.templates if not item.type}
        if parameter.type == "bool":
            return " = true"
        if _INTEGER.fullmatch(parameter.type):
            return " = 64"
        return (
            " = 1.0f"
            if _FLOAT.fullmatch(parameter.type)
            else "(1)"
            if parameter.type in types and self._placeholder(TemplateParameter(parameter.type)) == "float"
            else "{}"
        )

    def _geometry(self) -> list[str]:
        grid, block, shared = self.launch.figures if self.launch else ("", "", "0")
        where = (
            f"  // launched at {self.launch.path}:{self.launch.line} with {{}}"
            if self.launch
            else "  // no launch of it was found"
        )
        told = (self.launch.grid, self.launch.block, self.launch.shared) if self.launch else ("", "", "")
        return [
            f"const dim3 grid = {_dim3(grid or '64')};{where.format(told[0])}",
            f"const dim3 block = {_dim3(block or str(_THREADS))};{where.format(told[1])}",
            f"constexpr std::size_t shared_bytes = {shared or '0'};{where.format(told[2])}",
        ]

    def _each_note(self) -> str:
        return " Element i is what thread i gets." if self.signature.where is Where.DEVICE else ""

    def _reference_parameters(self) -> str:
        return ", ".join(
            f"{'' if item.is_output else 'const '}{item.buffer}* {item.name}"
            if item.buffer
            else f"{_passed(item.parameter.type)} {item.name}"
            for item in self._listed()
        )

    @staticmethod
    def _reference_argument(item: _Argument) -> str:
        return f"{item.name}.expected()" if item.buffer else item.name

    def _callee(self) -> str:
        names = [item.name for item in self.signature.templates]
        own = f"{self.signature.name}<{', '.join(names)}>" if names else self.signature.name
        return f"object.{self.signature.name}" if self.signature.owner else own

    def _object(self) -> str:
        return f"  {self.signature.owner} object{{}};" if self.signature.owner else ""

    def _launch(self) -> tuple[str, list[str]]:
        words = [f"{item.name}.to_device()" if item.buffer else item.name for item in self.arguments]
        return "", [
            f"  {self._callee()}<<<grid, block, shared_bytes>>>({', '.join(words)});",
            "  SCAFFOLD_CHECK(hipGetLastError());",
            "  SCAFFOLD_CHECK(hipDeviceSynchronize());",
        ]

    def _each(self) -> tuple[str, list[str]]:
        """One thread for each element, each calling the function with its own values."""
        taken = ", ".join(f"{item.buffer}* {item.name}_all" for item in self._buffers())
        lines = [
            ": every thread calls the function once",
            f"__global__ void __launch_bounds__(1024) each_thread({taken}) {{",
            "  const unsigned i = threadIdx.x;",
        ]
        for item in self.arguments:
            if item.buffer:
                pointer = item.parameter.is_pointer
                lines.append(
                    f"  {item.buffer}{'*' if pointer else '&'} {item.name} = {item.name}_all{'' if pointer else '[i]'};"
                )
        call = f"{self._callee()}({', '.join(item.value or item.name for item in self.arguments)})"
        lines += [line for line in [self._object()] if line]
        lines += [f"  result_all[i] = {call};" if self._result() else f"  {call};", "}"]
        words = ", ".join(f"{item.name}.to_device()" for item in self._buffers())
        return "\n".join(lines), [
            f"  each_thread<<<1, threads>>>({words});",
            "  SCAFFOLD_CHECK(hipGetLastError());",
            "  SCAFFOLD_CHECK(hipDeviceSynchronize());",
        ]

    def _plain(self) -> tuple[str, list[str]]:
        words = ", ".join(f"{item.name}.on_both()" if item.buffer else item.value for item in self.arguments)
        call = f"{self._callee()}({words})"
        if self._result():
            call = f"result.on_both()[0] = {call}"
        elif self.signature.returns not in ("void", ""):
            call = f"[[maybe_unused]] const auto returned = {call}"
        lines = [line for line in [self._object()] if line]
        return ": a plain call; pointers lead to memory that host and device both reach", [
            *lines,
            f"  {call};",
            "  SCAFFOLD_CHECK(hipDeviceSynchronize());",
        ]


def _is_constant(text: str) -> bool:
    return bool(
        _INTEGER.fullmatch(text)
        or _FLOAT.fullmatch(text)
        or re.fullmatch(r"\d+[uUlL]*|true|false|bool|(?:float|double|int|uint|half)[248]?", text)
    )


def _passed(type_name: str) -> str:
    """A type as a parameter that is only read."""
    small = _INTEGER.fullmatch(type_name) or _FLOAT.fullmatch(type_name) or type_name == "bool"
    return type_name if small else f"const {type_name}&"


def _dim3(text: str) -> str:
    inner = re.sub(r"^dim3", "", text)
    return (
        f"dim3{inner}"
        if inner.startswith("(") and inner.endswith(")") and inner != text
        else f"dim3({text.replace('dim3', '')})"
    )
