#!/usr/bin/env python3
"""Test of tools/intel_listing.py: a listing counted by hand, and limits for the main loops of kernels on Intel's cards.
  test_intel_counts.py TOOLS BUILD     skipped (77) without ocloc and iga64, after the listing is counted"""
# ctest: slow cost=28
import pathlib
import sys
import tempfile

LISTING = """
L0:
        mad (16|M0)              r9.0<1>:f     r9.0<1;0>:f       r2.0<1;0>:f       r3.0<1>:f
(W&~f0.0) jmpi                               L64
L32:
(W)     mov (1|M0)               r5.1<1>:d     0:w                               {Compacted}
L64:
        mov (16|M0)              r9.0<1>:w     r8.0<2;1,0>:w                    {$23.dst}
        add (16|M0)              r2.0<1>:q     r4.0<1;1,0>:q     r6.0<1;1,0>:q
        sync.nop                             null                             {Compacted,I@7}
        send.slm (16|M0)         r8       r3      null:0  0x0            0x02100B00           {$23} // wr:1+0, rd:1; load.slm.d16u32.a32
        send.slm (16|M0)         r8       r3      null:0  0x0            0x02403500           {$19} // wr:1+0, rd:4; load.slm.d32x4.a32
        send.slm (1|M0)          r8       r3      null:0  0x0            0x0240D500           {$19} // wr:1+0, rd:4; load.slm.d32x64t.a32
        send.slm (16|M0)         null     r3      r9:4    0x0            0x02003504           {$15} // wr:1+4, rd:0; store.slm.d32x4.a32
        send.ugm (16|M0)         r8       r200    null:0  0x0            0x04403580           {$17} // wr:2+0, rd:4; load.ugm.d32x4.a64
        math.exp (16|M0)         r1.0<1>:f     r1.0<1;1,0>:f
        dpas.8x8 (16|M0)         r45:f         r45:f             r16:hf            r9.0:hf          {Atomic,Compacted,$12.dst}
        dpas.8x8 (16|M0)         r53:f         r53:f             r16:hf            r28.0:hf         {Compacted,$12}
(W&f1.0) jmpi                                L160
        dpas.8x8 (16|M0)         r61:f         r61:f             r16:hf            r28.0:hf         {Compacted,$12}
L160:
(W&~f0.0) jmpi                               L64
(W)     jmpi                                 L0
"""

# Limits of the main loop: maximum instructions per dpas, the dpas included; minimum share of the peak that
# the pipes allow, in percent; minimum share of wide SLM loads. About 15 % from the measured counts (ocloc
# 22.43).
BOUNDS = {
    ("arc_a770", "linear", "linear_mma"): (25, 90, 90), ("arc_a770", "linear_dx", "linear_mma"): (28, 76, 90),
    ("arc_a770", "linear_dw", "linear_mma"): (45, 45, 50), ("max1550", "linear", "linear_mma"): (23, 53, 90),
    ("max1550", "linear_dx", "linear_mma"): (28, 40, 90), ("max1550", "linear_dw", "linear_mma"): (43, 25, 40),
    ("arc_a770", "attention:64", "attention_mma_columns_forward"): (23, 90, 90),
    ("arc_a770", "attention:64", "attention_mma_columns_dq"): (14, 90, 90),
    ("arc_a770", "attention:64", "attention_mma_columns_keys"): (15, 90, 90),
    ("max1550", "attention:64", "attention_mma_columns_forward"): (19, 65, 90),
    ("max1550", "attention:64", "attention_mma_columns_dq"): (11, 90, 90),
    ("max1550", "attention:64", "attention_mma_columns_keys"): (11, 90, 90),
}


def check_listing(tool):
    body, wanted = tool.main_loop(LISTING)
    assert wanted == "dpas" and len(body) == 13, (wanted, [line for *_, line in body])
    pvc, arc = (tool.count_loop(body, wanted, card) for card in ("max1550", "arc_a770"))
    assert (pvc["useful"], pvc["slots"], pvc["shared"], pvc["shared_loads"], pvc["wide_loads"], pvc["global"]) == (3, 24, 4, 3, 2, 1), pvc
    assert (pvc["pipe"], pvc["busiest"]) == ("matrix", 24), pvc
    # the move, the sum of 64 bits, the function and two branches: 2 + 4 + 8 + 2 clocks of 8 lanes
    assert (arc["slots"], arc["busiest"]) == (3 * 16, 48) and tool.slots_of("math.exp", 16, "r1.0<1>:f", "arc_a770") == ("integer", 8)
    assert tool.slots_of("add", 16, "r2.0<1>:q r4.0<1;1,0>:q", "arc_a770") == ("integer", 4)
    assert tool.slots_of("mad", 16, "r9.0<1>:f", "max1550") == ("float", 1)
    body, wanted = tool.main_loop(LISTING.replace("dpas.8x8", "mul"))
    assert wanted == "mad" and sum(opcode == "mad" for opcode, *_ in body) == 1, "the loop around it has the only mad"
    assert tool.main_loop("mov (16|M0)  r9.0<1>:w  r8.0<2;1,0>:w\n")[0] is None


def check_kernels(tool, build, folder):
    tool.find_compiler()  # checked before listing the programs, which takes a minute
    (folder / "programs").mkdir()
    programs = tool.list_programs(build, folder / "programs")
    compiled = {}
    for (card, workload, kernel), (most, least_peak, least_wide) in BOUNDS.items():
        if (card, workload) not in compiled:
            compiled[card, workload] = tool.rows_of(programs, card, "f16", workload, folder)
        rows = [row for row in compiled[card, workload] if row[0] == kernel]
        assert len(rows) == 1, f"{workload} on {card}: {[row[:2] for row in compiled[card, workload]]}"
        _, _, counts, wanted, facts, spilled = rows[0]
        name = f"{kernel} of {workload} on {card}"
        assert wanted == "dpas" and counts, f"{name}: no dpas in a loop"
        each, peak = counts["instructions"] / counts["useful"], 100 * counts["slots"] / counts["busiest"]
        wide = 100 * counts["wide_loads"] / counts["shared_loads"]
        print(f"{name}: {each:.1f} instructions per dpas, peak {peak:.0f} %, {wide:.0f} % wide loads")
        assert each <= most, f"{name}: {each:.1f} instructions per dpas, more than {most}"
        assert peak >= least_peak, f"{name}: {peak:.0f} % of the peak, less than {least_peak} %"
        assert wide >= least_wide, f"{name}: {wide:.0f} % wide loads, less than {least_wide} %"
        most_spilled = 16 if kernel.endswith("_keys") else 0  # dK and dV of heads of 64: 192 of 256 registers hold operands and sums
        assert spilled <= most_spilled, f"{name}: {spilled} registers spilled, {facts['scratch']} bytes of scratch"
        assert facts["scratch"] == 0 or kernel.startswith("attention"), f"{name}: {facts['scratch']} bytes of scratch"
        assert facts["simd_size"] == tool.CARDS[card][2] and 0 < facts["slm_size"] <= 32768, facts
    _, _, counts, wanted, facts, spilled = tool.rows_of(programs, "max1550", "f32", "linear", folder)[0]
    assert wanted == "mad" and counts["useful"] / counts["instructions"] >= 0.65 and not spilled, counts


def main():
    tools, build = sys.argv[1:3]
    sys.path.insert(0, tools)
    import intel_listing as tool
    check_listing(tool)
    with tempfile.TemporaryDirectory() as folder:
        try:
            check_kernels(tool, build, pathlib.Path(folder))
        except tool.Missing as missing:
            print(f"intel_counts: skipped: {missing}")
            sys.exit(77)
    print("intel_counts: ok")


if __name__ == "__main__":
    main()
