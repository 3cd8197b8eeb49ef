"""Makefiles: what a person would write by hand for hipcc."""

from __future__ import annotations

import pytest

from amdflow.migrate.build_scripts.make import convert_makefile
from tests.unit.migrate.build_scripts.scripts import TABLES, TARGETS, make

HIP_ARCH = "HIP_ARCH ?= gfx942,gfx1100\n"
ROCM = "ROCM_PATH ?= /opt/rocm\n"
FAST = (
    "-fgpu-flush-denormals-to-zero -fgpu-approx-transcendentals -fno-hip-fp32-correctly-rounded-divide-sqrt"
    " -ffp-contract=fast"
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("NVCC = nvcc\n", "NVCC = hipcc\n"),
        ("CC = nvcc -ccbin g++\n", "CC = hipcc\n"),
        ("NVCC ?= ccache nvcc\n", "NVCC ?= ccache hipcc\n"),
        ("NVCC := $(CUDA_HOME)/bin/nvcc\n", f"{ROCM}NVCC := $(ROCM_PATH)/bin/hipcc\n"),
        ("NVCC = /usr/local/cuda-12.4/bin/nvcc\n", f"{ROCM}NVCC = $(ROCM_PATH)/bin/hipcc\n"),
        (
            "CUDA_PATH ?= /usr/local/cuda\nNVCC = $(CUDA_PATH)/bin/nvcc\n",
            "ROCM_PATH ?= /opt/rocm\nNVCC = $(ROCM_PATH)/bin/hipcc\n",
        ),
        ("%.o: %.cu\n\tnvcc -c $< -o $@\n", "%.o: %.cu\n\thipcc -c $< -o $@\n"),
        ("a.o: a.cu ; nvcc -c $<\n", "a.o: a.cu ; hipcc -c $<\n"),
        ("a:\n\t@echo now && nvcc a.cu\n", "a:\n\t@echo now && hipcc a.cu\n"),
        ("CC = nvcc\nifeq ($(CC),nvcc)\nX = 1\nendif\n", "CC = hipcc\nifeq ($(CC),hipcc)\nX = 1\nendif\n"),
    ],
)
def test_the_compiler(before: str, after: str) -> None:
    assert make(before) == after


@pytest.mark.parametrize(
    "line", ["# $(NVCC) -arch=sm_70 $<", "@# nvcc -lcudart", '@echo "$(NVCC) -arch=sm_70 -lcudart"']
)
def test_what_a_recipe_only_says_stays(line: str) -> None:
    assert f"\t{line}\n" in make(f"NVCC = nvcc\na: a.cu\n\t{line}\n\t$(NVCC) -c $<\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ARCH = sm_70\nF = -arch=$(ARCH)\n", "ARCH = gfx942,gfx1100\nF = --offload-arch=$(ARCH)\n"),
        ("NVFLAGS = -arch=sm_80\n", f"{HIP_ARCH}NVFLAGS = --offload-arch=$(HIP_ARCH)\n"),
        ("NVFLAGS = -arch sm_80\n", f"{HIP_ARCH}NVFLAGS = --offload-arch=$(HIP_ARCH)\n"),
        ("SM = 80\nNVFLAGS = -arch=sm_$(SM)\n", f"{HIP_ARCH}SM = 80\nNVFLAGS = --offload-arch=$(HIP_ARCH)\n"),
        (
            "# flags\n\nNVFLAGS = -gencode arch=compute_70,code=sm_70 \\\n  -gencode=arch=compute_80,code=sm_80 -O3\n",
            f"# flags\n\n{HIP_ARCH}NVFLAGS = --offload-arch=$(HIP_ARCH) \\\n  -O3\n",
        ),
        (
            "NVFLAGS += -gencode arch=compute_$(SM),code=[sm_$(SM),compute_$(SM)]\n",
            f"{HIP_ARCH}NVFLAGS += --offload-arch=$(HIP_ARCH)\n",
        ),
        (
            'NVFLAGS = -gencode arch=compute_70,code="sm_70,compute_70" -gencode=arch=compute_80,code=\\"sm_80,compute_80\\" -g\n',
            f"{HIP_ARCH}NVFLAGS = --offload-arch=$(HIP_ARCH) -g\n",
        ),
        (
            "G = $(foreach s,$(SMS),-gencode arch=compute_$(s),code=sm_$(s))\n",
            f"{HIP_ARCH}G = $(foreach s,$(SMS),--offload-arch=$(HIP_ARCH))\n",
        ),
        (
            "a.o: a.cu\n\t$(NVCC) -arch $(SM_OF_ANOTHER_FILE) -c a.cu\n",
            f"{HIP_ARCH}a.o: a.cu\n\t$(NVCC) --offload-arch=$(HIP_ARCH) -c a.cu\n",
        ),
        (
            "HIP_ARCH = gfx908\nNVFLAGS = -arch=sm_80\n",
            "AMDFLOW_HIP_ARCH ?= gfx942,gfx1100\nHIP_ARCH = gfx908\nNVFLAGS = --offload-arch=$(AMDFLOW_HIP_ARCH)\n",
        ),
    ],
)
def test_architectures_stay_the_users_to_set(before: str, after: str) -> None:
    assert make(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("-Xcompiler -Wall", "-Wall"),
        ("-Xcompiler=-Wall,-Wextra", "-Wall -Wextra"),
        ('-Xcompiler "-Wall -fPIC" -O2', "-Wall -fPIC -O2"),
        ("--compiler-options '-fopenmp'", "-fopenmp"),
        ("-Xcompiler -Wl,-rpath,/x", "-Wl,-rpath,/x"),
        ("-Xcompiler $(HOSTFLAGS)", "$(HOSTFLAGS)"),
        ("-Xptxas -v,-dlcm=ca -O3", "-O3"),
        ("-O3 --ptxas-options=-v", "-O3"),
        ("-O3 --expt-relaxed-constexpr -expt-extended-lambda -g", "-O3 -g"),
        ("-O3 --use_fast_math", f"-O3 {FAST}"),
        ("-use_fast_math", FAST),
        ("-lineinfo", "-gline-tables-only"),
        ("-rdc=true", "-fgpu-rdc"),
        ("--relocatable-device-code true", "-fgpu-rdc"),
        ("-std c++17", "-std=c++17"),
        ("-ftz=true -prec-div=false", "-fgpu-flush-denormals-to-zero -fno-hip-fp32-correctly-rounded-divide-sqrt"),
        ("--default-stream per-thread", "-fgpu-default-stream=per-thread"),
        ("-G -g", "-g -g"),
        ("-maxrregcount 32 -O2", "-O2"),
        ("-Xlinker -rpath", "-Wl,-rpath"),
        ("$(addprefix -Xcompiler ,$(HOST))", "$(addprefix ,$(HOST))"),
        ("$(addprefix -Xlinker ,$(LD))", "$(addprefix -Xlinker ,$(LD))"),
        ("-x cu", "-x hip"),
        ("--threads 4 -t2", "-t2"),
        ("-Xcudafe --diag_suppress=20012 -w", "-w"),
    ],
)
def test_options(before: str, after: str) -> None:
    assert make(f"NVCCFLAGS = {before}\nNVCC = nvcc\n") == f"NVCCFLAGS = {after}\nNVCC = hipcc\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("-lcudart -lcublas -lm", "-lamdhip64 -lhipblas -lm"),
        ("-lcudadevrt -lcufft", "-lhipfft"),
        ("-lcurl -lcurand", "-lcurl -lhiprand"),
        ("-lnccl -lcusparse -lcusolver -lnvrtc", "-lrccl -lhipsparse -lhipsolver -lhiprtc"),
    ],
)
def test_libraries(before: str, after: str) -> None:
    assert make(f"LIBS = {before}\n") == f"LIBS = {after}\n"


def test_folders_of_the_toolkit_are_folders_of_rocm() -> None:
    text = "CUDA_HOME = /usr/local/cuda\nINC = -I$(CUDA_HOME)/include/ -I.\nLIB = -L$(CUDA_HOME)/lib64 -L/usr/local/cuda/lib64/stubs -lcuda\n"
    assert make(text) == (
        "ROCM_PATH ?= /opt/rocm\nINC = -I$(ROCM_PATH)/include -D__HIP_PLATFORM_AMD__ -I.\n"
        "LIB = -L$(ROCM_PATH)/lib -L$(ROCM_PATH)/lib -lamdhip64\n"
    )


def test_a_toolkit_variable_that_is_still_needed_stays() -> None:
    text = "CUDA_HOME = /usr/local/cuda\nINC = -I$(CUDA_HOME)/include -I$(CUDA_HOME)/samples/common/inc\n"
    made = make(text)
    assert "CUDA_HOME = /usr/local/cuda" in made
    assert "-I$(CUDA_HOME)/samples/common/inc" in made
    assert "ROCM_PATH ?= /opt/rocm" in made


def test_relocatable_device_code_is_linked_as_such() -> None:
    text = "CC = nvcc\nmain: a.o\n\t$(CC) a.o -o main\na.o: a.cu\n\t$(CC) -dc a.cu -o a.o\n"
    assert make(text) == (
        "CC = hipcc\nmain: a.o\n\t$(CC) -fgpu-rdc a.o -o main\na.o: a.cu\n\t$(CC) -fgpu-rdc -c a.cu -o a.o\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "CC = gcc\nCFLAGS = -O2 -march=native\nall: a.o\n\t$(CC) a.o -lcurl\n",
        "# nvcc -arch=sm_70\nall:\n",
        "VERSION = $(shell nvcc --version | tail -1)\n",
        "all:\n\t@which nvcc\n",
        "docs: cuda.md\n\ttar --keep -x archive.tar -C cuda\n",
        "nvcc: nvcc.o\n",
    ],
)
def test_what_is_not_understood_is_left_alone(text: str) -> None:
    assert make(text) == text


def test_each_change_is_recorded_at_its_own_line_and_lines_lead_back() -> None:
    text = "# comment\nCC = nvcc\n\nFLAGS = -O3 \\\n  -lineinfo \\\n  -arch=sm_80\n"
    done = convert_makefile("Makefile", text, TABLES, TARGETS)
    assert done is not None
    assert [(fix.rule, fix.line) for fix in done.applied] == [
        ("AMF1512", 2),
        ("AMF1515", 2),
        ("AMF1513", 5),
        ("AMF1512", 6),
    ]
    lines = done.text.split("\n")
    assert [done.lines.original(lines.index(line) + 1) for line in lines[:5]] == [1, 2, 2, 3, 4]


def test_line_endings_stay() -> None:
    assert make("CC = nvcc\r\nF = -arch=sm_70 \\\r\n  -lineinfo\r\n").replace("\r\n", "").count("\n") == 0
