#!/usr/bin/env python3
"""Registers, spills and shared memory of the CUDA kernels, as ptxas reports them.

    tools/ptxas_table.py --compile REPORT -- NVCC ...   runs nvcc with -Xptxas -v; its report goes to REPORT
    tools/ptxas_table.py --check REPORT...              fails on a spill, on more registers than committed, and if wgmma
                                                        instructions do not run in the background; the reports are those
                                                        of all sources together
    tools/ptxas_table.py --update REPORT...             commits the most registers of the reports, in whole units of 8: those
                                                        of each version of ptxas that a user may have
    tools/ptxas_table.py --table                        the committed registers as a table of Markdown
    tools/ptxas_table.py --check-page                   fails unless docs/results/gpu.md holds that table

The committed registers are src/cuda/kernels/registers.json. Occupancy follows from registers, shared
memory and threads of a block by the limits of each architecture; nothing here was measured.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMITTED = ROOT / "src/cuda/kernels/registers.json"
PAGE = ROOT / "docs/results/gpu.md"
# Of a multiprocessor: registers, bytes of shared memory, threads, blocks (CUDA C++ Programming Guide,
# "Compute capabilities"). Registers of a warp are given out in units of 256.
LIMITS = {"sm_80": (65536, 164 << 10, 2048, 32), "sm_89": (65536, 100 << 10, 1536, 24),
          "sm_90a": (65536, 228 << 10, 2048, 32)}
THREADS = 128  # of a block, but for products and these kernels: threads, bytes of shared memory
# Attention: AttentionShape::shared_bytes, for the widths of heads that need most.
BLOCKS = {"BlocksGemmKernel": (32, 0), "GroupedBlocksGemmKernel": (32, 0),
          "FewBlocksGemmKernel<gated": (256, 36864), "GroupedFewBlocksGemmKernel<gated": (256, 36864),
          "FewBlocksGemmKernel": (256, 37888), "GroupedFewBlocksGemmKernel": (256, 37888),
          "FindLargestKernel": (256, 96), "WeighGroupsKernel": (256, 0), "DrawKernel": (256, 41328),
          "RmsNormKernel": (128, 16400), "LayerNormKernel": (128, 16400),
          "BranchKernel": (128, 16400), "QuantizeKernel": (128, 16), "StoreHeadsKernel": (128, 8704),
          "ListSlotsKernel": (256, 32), "DeltaKernel<128>": (128, 18688), "DeltaKernel<256>": (128, 35072),
          "AttentionKernel<Bf16, 8, 4": (128, 68608), "AttentionKernel": (128, 101376),
          "WideAttentionKernel<4": (256, 49664), "WideAttentionKernel<8": (256, 98816),
          "SpecializedAttentionKernel<4": (384, 115264), "SpecializedAttentionKernel<8": (384, 229952)}
GIVING, BEGIN = ("PersistentGemm", "SpecializedAttention"), 168  # kBeginRegisters, src/cuda/kernels/wgmma.h
UNIT = 8       # registers of a thread are given out in such units


def demangle(names):
    text = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True)
    return text.stdout.splitlines()


def short(name):
    """`void skein::cuda::on_device::F<skein::Bf16, 8>(...)` as `F<Bf16, 8>`."""
    name = re.sub(r"^void |\([^()]*\)$|\b(skein|cuda|on_device)::", "", name)
    name = re.sub(r"\(GemmOutput\)(\d)", lambda m: ("store", "add", "gated")[int(m[1])], name)
    name = re.sub(r", \(AttentionKind\)(\d)", lambda m: ("", ", extended", ", capped", ", biased")[int(m[1])], name)
    return name.replace("signed char", "int8")


def parse(report):
    """{kernel: {arch: {"registers": n, "spills": bytes, "serialized": whether its wgmma wait for each other}}}"""
    found, current = {}, None
    for line in report.splitlines():
        entry = re.search(r"Compiling entry function '(\w+)' for '(\w+)'", line)
        spills = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line)
        used = re.search(r"Used (\d+) registers", line)
        if entry:
            current = found.setdefault(entry[1], {}).setdefault(entry[2], {"spills": 0})
        elif spills and current is not None:
            current["spills"] += int(spills[2]) + int(spills[3])
        elif used and current is not None:
            current["registers"] = int(used[1])
            current = None
    for name in re.findall(r"wgmma\.mma_async instructions are serialized .* in the function '(\w+)'", report):
        found[name]["sm_90a"]["serialized"] = True
    names = sorted(found)
    return dict(sorted(zip(map(short, demangle(names)), (found[n] for n in names))))


def tile_of(kernel):
    """(threads, bytes of shared memory) of a block. The bytes are those of GemmTile::Shared."""
    tile = re.search(r"GemmTile<(\d+), (\d+), (\d+), (\d+), \d+>", kernel)
    if not tile:
        return next((size for name, size in BLOCKS.items() if kernel.startswith(name)), (THREADS, 0))
    warps, panels, rows, stages = map(int, tile.groups())
    operands = stages * (128 * rows + 2048 * warps * panels)
    return (384, operands + 128) if kernel.startswith("PersistentGemm") else (32 * warps, operands)


def occupancy(kernel, arch, registers):
    """Warps that a multiprocessor holds at a time, of those that it could."""
    all_registers, shared, threads, blocks = LIMITS[arch]
    block_threads, block_shared = tile_of(kernel)
    warps = block_threads // 32
    per_warp = -(-registers * 32 // 256) * 256
    fit = min(blocks, threads // block_threads, all_registers // (per_warp * warps))
    if block_shared:
        fit = min(fit, shared // (block_shared + 1024))
    return fit * warps, threads // 32


def check(found, committed):
    errors = []
    for kernel, archs in found.items():
        for arch, used in archs.items():
            limit = committed.get(kernel, {}).get(arch)
            if used["spills"]:
                errors.append(f"{kernel} spills {used['spills']} bytes on {arch}")
            if used.get("serialized"):
                errors.append(f"{kernel}: its wgmma instructions do not run in the background on {arch}")
            if arch == "sm_90a" and kernel.startswith(GIVING) and used["registers"] != BEGIN:
                errors.append(f"{kernel} begins with {used['registers']} registers, not {BEGIN}, which its warps share")
            if limit is None:
                errors.append(f"{kernel} has no committed registers on {arch}: --update")
            elif used["registers"] > limit:
                errors.append(f"{kernel} uses {used['registers']} registers on {arch}; committed are {limit}")
    errors += [f"{kernel} is committed, but was not compiled" for kernel in committed.keys() - found.keys()]
    return errors


def combined(reports):
    """The reports of several sources, or of several versions of ptxas, as one: the most of each."""
    found = {}
    for report in reports:
        for kernel, archs in report.items():
            for arch, used in archs.items():
                both = found.setdefault(kernel, {}).setdefault(arch, {})
                both.update({fact: max(value, both.get(fact, 0)) for fact, value in used.items()})
    return found


def whole_units(found):
    """{kernel: {arch: its registers, in whole units}}"""
    return {kernel: {arch: -(-used["registers"] // UNIT) * UNIT for arch, used in archs.items()} for kernel, archs in found.items()}


def table(committed):
    archs = list(LIMITS)
    lines = ["| kernel | threads | shared bytes | " + " | ".join(archs) + " |",
             "|---|---|---|" + "---|" * len(archs)]
    for kernel, registers in committed.items():
        threads, shared = tile_of(kernel)
        cells = []
        for arch in archs:
            warps, most = occupancy(kernel, arch, registers[arch])
            cells.append(f"{registers[arch]}, {warps} of {most}")
        lines.append(f"| `{kernel}` | {threads} | {shared} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def self_check():
    report = ("ptxas info    : Compiling entry function '_Z1fi' for 'sm_80'\n"
              "ptxas info    : Function properties for _Z1fi\n"
              "    8 bytes stack frame, {} bytes spill stores, 0 bytes spill loads\n"
              "ptxas info    : Used 40 registers, used 1 barriers\n")
    assert parse(report.format(4)) == {"f": {"sm_80": {"spills": 4, "registers": 40}}}
    assert check(parse(report.format(4)), {"f": {"sm_80": 40}}) == ["f spills 4 bytes on sm_80"]
    assert check(parse(report.format(0)), {"f": {"sm_80": 40}}) == []
    assert len(check(parse(report.format(0)), {"f": {"sm_80": 39}})) == 1
    serial = report.replace("sm_80", "sm_90a") + ("ptxas info    : (C7513) Potential Performance Loss: wgmma.mma_async instructions are "
                                                  "serialized due to some reason in the function '_Z1fi'\n")
    assert len(check(parse(serial.format(0)), {"f": {"sm_90a": 40}})) == 1
    more = parse(report.format(0).replace("Used 40", "Used 41"))
    assert whole_units(combined([parse(report.format(0)), more])) == {"f": {"sm_80": 48}}
    other = {"g": {"sm_80": {"spills": 0, "registers": 8}}}
    assert check(combined([more, other]), {"f": {"sm_80": 41}, "g": {"sm_80": 8}}) == []
    assert len(check(parse(report.format(0)), {})) == 1 and len(check({}, {"f": {}})) == 1
    assert short("void skein::cuda::on_device::F<skein::Bf16, (GemmOutput)2>(G)") == "F<Bf16, gated>"
    assert occupancy("F", "sm_80", 32) == (64, 64) and occupancy("F", "sm_80", 255) == (8, 64)


def main():
    self_check()
    mode = sys.argv[1] if len(sys.argv) > 1 else ""
    if mode == "--compile":
        run = subprocess.run(sys.argv[sys.argv.index("--") + 1:], capture_output=True, text=True)
        pathlib.Path(sys.argv[2]).write_text(run.stdout + run.stderr)
        if run.returncode != 0:
            print(run.stdout + run.stderr)
        return run.returncode
    if mode == "--table":
        print(table(json.loads(COMMITTED.read_text())))
        return 0
    if mode == "--check-page":
        found = table(json.loads(COMMITTED.read_text())) in PAGE.read_text()
        print(f"{PAGE.name} {'holds' if found else 'does not hold'} the table of registers")
        return 0 if found else 1
    if mode not in ("--check", "--update"):
        print(__doc__)
        return 2
    reports = [parse(pathlib.Path(report).read_text()) for report in sys.argv[2:]]
    found = combined(reports)
    if mode == "--update":
        COMMITTED.write_text(json.dumps(whole_units(found), indent=1, sort_keys=True) + "\n")
    errors = check(found, json.loads(COMMITTED.read_text()))
    print("\n".join(errors) or f"{len(found)} kernels without a spill, within their registers")
    return 0 if found and not errors else 1


if __name__ == "__main__":
    sys.exit(main())
