#!/usr/bin/env bash
# gemmi 0.7.5 writes a chain whose name has two letters into columns 21 and 22 of a PDB file; the format's version 3.3 leaves
# column 21 blank. gemmi reads two chains back. Biopython 1.88 reads column 22 alone: chain AA counts as more of chain A, its
# residues have numbers that A has, and its atoms are left out, with warnings. So a large ribosome that went through gemmi
# loses chains on the way to whatever reads by Biopython.
#
# cleat reads two letters as gemmi does.
#
# Output seen, 27 November 2026:
#   columns 21 and 22: ' A', ' A', 'AA', 'AA'
#   gemmi {'A': 2, 'AA': 2}, Biopython {'A': 2}
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check gemmi==0.7.5 biopython==1.88 numpy==2.4.6
cat >"$work/compare.py" <<'END'
import gemmi, sys, warnings
from Bio.PDB import PDBParser

path = sys.argv[1]
structure, model = gemmi.Structure(), gemmi.Model(1)
for name, x in (("A", 0.0), ("AA", 30.0)):
    chain = gemmi.Chain(name)
    for number in (1, 2):
        residue, atom = gemmi.Residue(), gemmi.Atom()
        residue.name, residue.seqid = "G", gemmi.SeqId(str(number))
        atom.name, atom.element, atom.pos = "C1'", gemmi.Element("C"), gemmi.Position(x + number, 0, 0)
        residue.add_atom(atom)
        chain.add_residue(residue)
    model.add_chain(chain)
structure.add_model(model)
structure.setup_entities()
structure.write_pdb(path)
columns = [line[20:22] for line in open(path) if line.startswith("ATOM")]
by_gemmi = {chain.name: len(chain) for chain in gemmi.read_structure(path)[0]}
warnings.simplefilter("ignore")
by_biopython = {chain.id: len(chain) for chain in PDBParser().get_structure("x", path)[0]}
print("columns 21 and 22:", ", ".join(map(repr, columns)))
print(f"gemmi {by_gemmi}, Biopython {by_biopython}")
expected = ([" A", " A", "AA", "AA"], {"A": 2, "AA": 2}, {"A": 2})
sys.exit(0 if (columns, by_gemmi, by_biopython) == expected else "this has changed")
END
"$work/venv/bin/python" "$work/compare.py" "$work/x.pdb"
