#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What NVIDIA's assembler makes of the kernels, for which no GPU is needed.

registers.py DGC [MODEL...] [--arch sm_80,sm_90,sm_100] [--nvrtc] [--check] [--leaves f32,f64,i32] [--known FILE [--record]]

For each kernel of a model, as `dgc compile --emit cuda` prints it, and with --leaves for each of kernels/cuda: threads of a
block, registers of a thread, shared memory, what is kept in local memory because registers do not suffice, and how many warps
of a multiprocessor that leaves (the formula of NVIDIA's occupancy calculator: registers are given to a warp by the 256, shared
memory to a block by the 128 bytes with 1024 for the system). --check says only what is wrong: local memory, or less than a
quarter of a multiprocessor's warps in f32. --nvrtc compiles by NVRTC, as dgc does, and takes two thirds of the time; nvcc's
registers are a few more or less. What FILE has is not compiled again: each text by its digest, in which the compiler, its options
and the architecture are, and what was found of it; --record writes those of this run into it, and no others. The last column
has the least time of the step that gave the kernel its name, in microseconds of an H100: its operations over the peak, or its
bytes over the bandwidth. Exit status 77: there is no nvcc.
"""
import argparse
import concurrent.futures
import ctypes
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# As runtime/cuda/compile.c has them.
OPTIONS = ['--fmad=false', '--ftz=false', '--prec-div=true', '--prec-sqrt=true', '--std=c++17']
# Bytes of shared memory, warps and blocks of a multiprocessor, by compute capability (CUDA C++ Programming Guide, table of
# technical specifications); all have 65,536 registers.
SHARED, WARPS, BLOCKS = {80: 164 << 10, 86: 100 << 10, 89: 100 << 10, 90: 228 << 10, 100: 228 << 10}, {86: 48, 89: 48}, 32
TYPES = {'f32': ('float', 'float'), 'f64': ('double', 'double'), 'i32': ('int', 'unsigned')}
H100 = 66.9e3, 3.35e3  # GFLOP/s in f32, GB/s: NVIDIA's data sheet of the SXM model
CONV_TILES = (256, 16), (128, 16), (128, 32), (64, 32), (32, 32), (128, 64), (64, 64), (32, 64)  # tile_of of runtime/cuda/conv.c
# Sizes in the text of conv_few: the definitions of runtime/cuda/conv_few.c, of cases of leaves.py.
FEW_NAMES = ['RESULT', 'GROUPS', 'COLUMNS', 'INNER', 'ROWS', 'RUN', 'TAKE', 'PART', 'SEEN_ROWS'] + [
    f'{name}_{axis}' for axis in 'HW' for name in ('SEEN', 'OUT', 'KERNEL', 'STEP', 'GAP', 'SPREAD', 'LOW')]
FEW = [
    ('resnet-20 first', (2, 1, 16, 3, 16, 4, 8, 3, 18, 32, 32, 3, 1, 1, 1, 1, 32, 32, 3, 1, 1, 1, 1)),
    ('resnet-20 first', (0, 1, 3, 16, 31, 11, 3, 8, 35, 32, 32, 3, 1, 1, 1, 1, 32, 32, 3, 1, 1, 1, 1)),
    ('resnet-20 a', (1, 1, 16, 16, 5, 8, 16, 16, 9, 32, 32, 3, 1, 1, 1, 1, 32, 32, 3, 1, 1, 1, 1)),
    ('lenet first', (2, 1, 6, 1, 51, 6, 6, 1, 63, 28, 28, 5, 1, 1, 1, 2, 28, 28, 5, 1, 1, 1, 2)),
    ('lenet first', (1, 1, 6, 1, 25, 7, 6, 1, 33, 28, 28, 5, 1, 1, 1, 2, 28, 28, 5, 1, 1, 1, 2)),
    ('lenet second', (2, 1, 16, 6, 64, 5, 8, 6, 96, 14, 10, 5, 1, 1, 1, 0, 14, 10, 5, 1, 1, 1, 0)),
    ('lenet second', (0, 1, 6, 16, 40, 5, 6, 8, 56, 10, 14, 5, 1, 1, 1, 4, 10, 14, 5, 1, 1, 1, 4)),
    ('lenet second', (1, 1, 16, 6, 26, 5, 8, 6, 42, 14, 10, 5, 1, 1, 1, 0, 14, 10, 5, 1, 1, 1, 0)),
    ('odd', (0, 1, 7, 9, 50, 4, 7, 9, 70, 12, 13, 3, 1, 1, 2, 2, 10, 11, 3, 1, 1, 2, 2)),
    ('odd, groups', (0, 5, 3, 2, 27, 8, 3, 2, 18, 5, 9, 3, 1, 2, 1, 1, 8, 14, 3, 1, 2, 1, 1)),
]
INTEGER_ONLY = {'matmul'}  # products of floating point numbers are cuBLAS's


def nvcc():
    found = shutil.which('nvcc') or '/usr/local/cuda/bin/nvcc'
    return found if os.access(found, os.X_OK) else None


@functools.cache
def nvrtc(compiler):
    """NVRTC of the same installation. It reads none of the headers that nvcc does ahead of each text, in a third of a second."""
    for folder in ('lib64', 'lib', f'targets/{os.uname().machine}-linux/lib'):
        try:
            return ctypes.CDLL(pathlib.Path(compiler).resolve().parents[1] / folder / 'libnvrtc.so')
        except OSError:
            continue
    sys.exit(f'there is no libnvrtc.so beside {compiler}')


def intermediate(library, text, arch):
    """PTX."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    options = [option.encode() for option in [f'--gpu-architecture={arch.replace("sm_", "compute_")}', *OPTIONS]]

    def got(what):
        getattr(library, f'nvrtcGet{what}Size')(program, ctypes.byref(size))
        data = ctypes.create_string_buffer(size.value)
        getattr(library, f'nvrtcGet{what}')(program, data)
        return data.value

    if library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b'kernels.cu', 0, None, None):
        sys.exit('NVRTC: out of memory')
    if library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options)):
        sys.exit(f'NVRTC: {got("ProgramLog").decode(errors="replace")[:2000]}')
    made = got('PTX')
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return made


@functools.cache
def version(compiler):
    return subprocess.run([compiler, '--version'], check=True, capture_output=True, text=True).stdout.split('release ')[-1].split(',')[0]


def digest(compiler, text, arch, by_nvrtc):
    how = [version(compiler), 'nvrtc' if by_nvrtc else 'nvcc', arch, *OPTIONS, text]
    return hashlib.sha256('\n'.join(how).encode()).hexdigest()[:16]


class Known:
    """Rows `DIGEST REGISTERS SHARED LOCAL KERNEL`, one for each kernel of a text."""

    def __init__(self):
        self.rows, self.used = {}, {}

    def read(self, path):
        for line in path.read_text().splitlines() if path and path.exists() else []:
            if line and not line.startswith('#'):
                key, registers, shared, local, name = line.split()[:5]
                self.rows.setdefault(key, {})[name] = int(registers), int(shared), int(local)

    def write(self, path):
        head = [line for line in path.read_text().splitlines() if line.startswith('#')] if path.exists() else []
        rows = [f'{key} {made[name][0]:3} {made[name][1]:6} {made[name][2]} {name}' for key, made in self.used.items() for name in made]
        path.write_text('\n'.join(head + sorted(rows, key=lambda row: row.split()[4:] + row.split())) + '\n')


known = Known()


def compile_text(compiler, text, arch, by_nvrtc):
    """By kernel: (registers, shared, local)."""
    key = digest(compiler, text, arch, by_nvrtc)
    if key not in known.used:
        found = known.rows.get(key, {})
        whole = len(found) == text.count('__global__')
        known.used[key] = found if whole else assemble(compiler, text, arch, by_nvrtc)
    return known.used[key]


def assemble(compiler, text, arch, by_nvrtc):
    library = by_nvrtc and nvrtc(compiler)
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, 'kernels.ptx' if library else 'kernels.cu')
        source.write_bytes(intermediate(library, text, arch) if library else text.encode())
        command = [str(pathlib.Path(compiler).resolve().parent / 'ptxas'), '-v'] if library else [
            compiler, '-cubin', '-Xptxas', '-v', *OPTIONS]
        done = subprocess.run([*command, f'-arch={arch}', '-o', f'{folder}/out', source], capture_output=True, text=True,
                              errors='replace')
    if done.returncode:
        sys.exit(f'{command[0]}: {done.stderr[:2000]}')
    made, name, local = {}, None, 0
    for line in done.stderr.splitlines():
        if m := re.search(r"entry function '(\w+)'", line):
            name, local = m[1], 0
        elif m := re.search(r'(\d+) bytes stack frame, (\d+) bytes spill stores', line):
            local = max(int(m[1]), int(m[2]))
        elif name and (m := re.search(r'Used (\d+) registers', line)):
            shared = re.search(r'(\d+) bytes smem', line)
            made[name] = int(m[1]), int(shared[1]) if shared else 0, local
            name = None
    return made


def warps(threads, registers, shared, arch):
    """Of a multiprocessor, that can be under way, and how many it has."""
    number = int(arch[3:])
    most, of_block = WARPS.get(number, 64), -(-threads // 32)
    by_registers = 65536 // (-(-registers * 32 // 256) * 256) // 4 * 4 // of_block
    by_shared = SHARED[number] // (-(-shared // 128) * 128 + 1024)
    return min(most // of_block, BLOCKS, by_registers, by_shared) * of_block, most


def leaves(types):
    """(name, type, text) of the kernels that are written by hand."""
    folder = ROOT / 'kernels/cuda'
    head = (folder / 'leaf.cuh').read_text()
    for file in sorted(folder.glob('*.cu')):
        for dtype in types:
            if file.stem in INTEGER_ONLY and dtype != 'i32':
                continue
            element, total = TYPES[dtype]
            definitions = f'#define TYPE {element}\n#define SUM {total}\n'
            for what, more in variants(file.stem, dtype):
                yield file.stem, what, definitions + more + head + shared(folder, file.stem) + file.read_text()


def shared(folder, name):
    """What else stands in front of it, see runtime/cuda/leaves.c."""
    kind = ['tensor'] * name.endswith('_tensor') + ['tiles'] * name.endswith('_tiles')
    files = [folder / f'{part}.cuh' for part in kind + [name.removesuffix('_tensor').removesuffix('_few')]]
    return ''.join(file.read_text() for file in files if file.exists())


def variants(name, dtype):
    """(what it is called, more definitions): those of runtime/cuda/conv.c, conv_few.c, attention.c and window.c."""
    if name == 'conv_few':
        return [(f'{what} {("input", "kernel", "output")[numbers[0]]}',
                 ''.join(f'#define {key} ({value})\n' for key, value in zip(FEW_NAMES, numbers)))
                for what, numbers in FEW] * (dtype == 'f32')
    if name == 'window_fixed':
        axes = ''.join(f'#define {key}_{i} {value}\n' for i in range(3) for key, value in
                       zip(('IN', 'SIZE', 'OUT', 'STRIDE', 'LOW'), (28, 2, 14, 2, 0) if i else (1, 1, 1, 1, 0)))
        return [(f'{("max", "put")[put]} {channels}', f'#define INDEX int\n#define PUT {put}\n#define CHANNELS {channels}\n{axes}')
                for put in (0, 1) for channels in (5, 6, 16)] * (dtype == 'f32')
    if name.startswith('attention_gradient_t'):
        how = '#define OWN_TENSORS 2\n' if name.endswith('_tiles') else '#define BF16 0\n'
        return [(f'{("queries", "keys")[keys]} {width}', f'{how}#define WIDTH {width}\n#define OF_KEYS {keys}\n')
                for keys in (0, 1) for width in (32, 64, 128)] * (dtype == 'f32')
    if name == 'attention_tiles':
        return [(f'f32 {width}', f'#define OWN_TENSORS 1\n#define WIDTH {width}\n') for width in (32, 64, 128)] * (dtype == 'f32')
    if not name.endswith('_tensor'):
        return [(dtype, '')]
    if name == 'attention_tensor':
        return [(f'tf32 {width}', f'#define BF16 0\n#define WIDTH {width}\n') for width in (32, 64, 128)] * (dtype == 'f32')
    factors = {'f32': '#define BF16 0\n#define EXACT 1\n', 'tf32': '#define BF16 0\n', 'bf16': '#define BF16 1\n'}
    tiles = [(result, high, wide, 64) for result in (0, 2) for high, wide in CONV_TILES] + [(0, 128, 16, 256), (2, 128, 16, 256)]
    tiles += [(1, high, wide, 64) for high, wide in ((48, 16), (32, 32), (64, 64), (128, 64))]
    return [(f'{what} {("input", "kernel", "output")[result]} {high} by {wide}',
             f'{lines}#define RESULT {result}\n#define HIGH {high}\n#define WIDE {wide}\n#define TAPS {taps}\n')
            for what, lines in factors.items() for result, high, wide, taps in tiles] * (dtype == 'f32')


def threads_of(text, name):
    """Of a block: of what is written by hand, and of reductions, 256 at most; of maps 128."""
    bounds, head = re.search(rf'__global__ void (?:__launch_bounds__\((.*)\)\s+)?{name}\(([^{{]*)', text).groups()
    if bounds and bounds.split(',')[0].isdigit():
        return int(bounds.split(',')[0])
    return 256 if 'scratch' in head or 'TYPE' in head else 128


def roofs(dgc, model):
    """By node: microseconds on an H100, by the operations and bytes that dgc counts of a step on a CPU. What a GPU's plan fuses
    otherwise has none."""
    done = subprocess.run([dgc, 'bench', model, '--devices', 'cpu:0', '--steps', '1', '--profile', '--json'],
                          capture_output=True, text=True)
    lines = json.loads(done.stdout).get('lines', []) if done.returncode == 0 else []
    return {re.sub(r'[^a-zA-Z0-9]', '_', l['what'])[:48]: max(l['gflop'] / H100[0], l['gb'] / H100[1]) * 1e6 for l in lines}


def measure(compiler, what, text, o, dtype='', roof=None):
    wrong, archs, check = [], o.arch.split(','), o.check
    columns = {arch: compile_text(compiler, text, arch, o.nvrtc) for arch in archs}
    for name in columns[archs[0]]:
        threads, cells = threads_of(text, name), []
        for arch in archs:
            registers, shared, local = columns[arch][name]
            busy, most = warps(threads, registers, shared, arch)
            cells.append(f'{registers:4} {busy:3}/{most}' + (f' LOCAL {local}' if local else ''))
            if local or (busy * 4 < most and 'double' not in text):
                wrong.append(f'{what}: {name} {dtype}: {arch}: {registers} registers, {local} bytes of local memory, '
                             f'{busy} of {most} warps')
        if not check:
            shared = columns[archs[0]][name][1]
            least = (roof or {}).get(re.sub(r'^k\d+_', '', name))
            print(f'{what:14} {(name + " " + dtype).strip():60.60} {threads:4} {shared:6}  ' + '  '.join(cells) +
                  (f'  {least:8.2f}' if least else ''))
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('dgc')
    parser.add_argument('models', nargs='*', help='all samples')
    parser.add_argument('--arch', default='sm_80,sm_90,sm_100')
    parser.add_argument('--check', action='store_true')
    parser.add_argument('--nvrtc', action='store_true')
    parser.add_argument('--leaves', default='', help='of these types; without MODEL only them')
    parser.add_argument('--known', metavar='FILE', type=pathlib.Path)
    parser.add_argument('--record', action='store_true')
    o = parser.parse_args()
    if o.record and not o.known:
        parser.error('--record wants --known FILE')
    compiler, archs, wrong, kernels = nvcc(), o.arch.split(','), [], 0
    known.read(o.known)
    if not compiler:
        print('SKIP: there is no nvcc (of CUDA 12.8 or newer)')
        return 77
    if not o.check:
        print(f'{"model":14} {"kernel":60} {"block":>4} {"shared":>6}  ' + '  '.join(f'{a}: registers, warps' for a in archs) +
              '  roof, us')
    for model in o.models or ([] if o.leaves else sorted((ROOT / 'samples').glob('*.dsl'))):
        text = subprocess.run([o.dgc, 'compile', model, '--devices', 'gpu:0', '--emit', 'cuda'], check=True,
                              capture_output=True, text=True).stdout
        wrong += measure(compiler, pathlib.Path(model).stem, text, o, roof=None if o.check else roofs(o.dgc, model))
        kernels += text.count('__global__')
    by_hand = list(leaves(o.leaves.split(','))) if o.leaves else []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda way: compile_text(compiler, *way, o.nvrtc), [(text, arch) for _, _, text in by_hand for arch in archs]))
    for name, dtype, text in by_hand:
        wrong += measure(compiler, 'kernels/cuda', text, o, dtype)
        kernels += 1
    if o.record and not wrong:
        known.write(o.known)
    print('\n'.join(wrong + [f'{kernels} kernels for {", ".join(archs)}: {len(wrong)} wrong']))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
