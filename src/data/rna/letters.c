/* The RNA alphabet, and the residue names of PDB files. */
#include "data/rna/set.h"

#include <stdio.h>
#include <string.h>

char cleat_rna_letter(char c) {
    char upper = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
    if (upper == 'T') return 'U';
    if (upper && strchr("ACGU", upper)) return upper;
    /* IUPAC-IUB 1984 codes of incompletely specified bases; X means any base in older files. */
    if (upper && strchr("RYSWKMBDHVNX", upper)) return 'N';
    return 0;
}

int32_t cleat_rna_token(char letter) {
    switch (letter) {
    case 'A':
        return 0;
    case 'C':
        return 1;
    case 'G':
        return 2;
    case 'U':
        return 3;
    default:
        return 4;
    }
}

/* Modified ribonucleotides by parent, as named by the wwPDB Chemical Component Dictionary
 * (_chem_comp.mon_nstd_parent_comp_id), and old spellings (YG, RA, ADE, ...). A code that is missing here is
 * read as N. */
static const struct {
    char letter;
    const char *names;
} modified[] = {
    {'A', " 1MA 2MA 6MZ A2M MA6 MIA T6A 12A RIA A23 A44 AET MAD SRA P5P "},
    {'C', " 5MC OMC 4OC M4C 5IC CBV C25 CH 1SC S4C M5M "},
    {'G', " 1MG 2MG M2G 7MG G7M OMG YG YYG QUO G25 2SG G48 GAO IG "},
    {'U', " PSU H2U 5MU 4SU 5BU 2MU OMU UR3 UD5 70U IU 125 126 127 3AU U8U SUR 3TD FHU MNU CM0 "},
};
static const char plain_names[] = " A C G U N ";
static const char old_names[] = " ADE CYT GUA URA RA RC RG RU ";
static const char dna_names[] = " DA DC DG DT DU DI DN T THY ";

static bool listed(const char *list, const char *name) {
    char padded[16] = " ";
    size_t length = strlen(name);
    if (!length || length > 8 || strchr(name, ' ')) return false;
    memcpy(padded + 1, name, length);
    padded[length + 1] = ' ';
    return strstr(list, padded) != NULL;
}

static cleat_residue_kind standard_name(const char *name, char *letter) {
    const bool plain = listed(plain_names, name);
    if (!plain && !listed(old_names, name)) return listed(dna_names, name) ? CLEAT_RESIDUE_DNA : CLEAT_RESIDUE_OTHER;
    *letter = name[!plain && strlen(name) == 2];
    return CLEAT_RESIDUE_RNA;
}

cleat_residue_kind cleat_rna_residue_name(const char *name, char *letter) {
    char stem[8];
    *letter = 'N';
    cleat_residue_kind kind = standard_name(name, letter);
    if (kind != CLEAT_RESIDUE_OTHER) return kind;
    for (size_t i = 0; i < sizeof modified / sizeof *modified; ++i)
        if (listed(modified[i].names, name)) {
            *letter = modified[i].letter;
            return CLEAT_RESIDUE_MODIFIED;
        }
    /* Amber's force fields call the ends of a chain A5 and U3, or RA5 and RU3, and a chain of one residue AN. */
    const size_t length = strlen(name);
    if (length < 2 || length > 3 || !strchr("53N", name[length - 1]) || name[length - 2] == 'N') return kind;
    snprintf(stem, sizeof stem, "%.*s", (int)length - 1, name);
    return standard_name(stem, letter);
}
