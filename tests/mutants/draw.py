"""Random places in C sources and a change for each: the mutants that mutants.py --random judges.

A mutant is one small change: a comparison, an operator, a constant, a condition, a removed statement, an ignored failure, a loop
that ends early, two swapped arguments. Places where a change has no effect for users are excluded: texts of messages and logs,
preprocessor lines, declarations outside of functions, sizes of buffers, releases of memory (which the sanitizer builds check), and
"<" versus "<=" if both sides are equal afterwards ("if (a < b) b = a;").
"""
import collections
import random
import re

Mutant = collections.namedtuple("Mutant", "path line kind old new start end")  # old, new: text[start:end] before and after

TOKEN = re.compile(r"""
    (?P<skip>\s+ | /\*.*?\*/ | //[^\n]* | ^[ ]*\#(?:[^\n\\]|\\.)*)
  | (?P<text>"(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*')
  | (?P<number>(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[uUlLfF]*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<mark><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[^\s\w])
""", re.X | re.S | re.M)

Token = collections.namedtuple("Token", "kind text start end")

RELATIONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&"}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "<<": ">>", ">>": "<<", "|": "&", "&": "|"}
ASSIGNMENTS = {"+=": "-=", "-=": "+=", "*=": "=", "/=": "=", "|=": "&=", "&=": "|="}
# Calls that print, reserve or release: nothing inside them is changed.
IGNORED = re.compile(r"(cleat_fail\w*|cleat_log\w*|cleat_error_\w+|_Static_assert|static_assert|assert|sizeof|fprintf|printf|cleat_alloc\w*|"
                     r"malloc|calloc|realloc|\w*warn\w*|\w+_fail|fail)$")
RELEASES = re.compile(r"((\w*_)?(free|destroy|close|release|drop|discard|unref)(_\w+)?|clRelease\w+|close\w*|fclose|pthread_\w+_destroy|"
                      r"freeState|XXH3_freeState|va_end|va_start)$")
NOT_CALLS = {"if", "for", "while", "switch", "return", "sizeof", "else", "do"}


def tokens_of(text):
    tokens = []
    for found in TOKEN.finditer(text):
        if found.lastgroup != "skip":
            tokens.append(Token(found.lastgroup, found.group(), found.start(), found.end()))
    return tokens


def partners(tokens):
    """The index of the matching bracket for each bracket."""
    opened, pairs = [], {}
    for i, token in enumerate(tokens):
        if token.text in "([{" and token.kind == "mark":
            opened.append(i)
        elif token.text in ")]}" and token.kind == "mark" and opened:
            pairs[i] = opened.pop()
            pairs[pairs[i]] = i
    return pairs


def inside_functions(tokens, pairs):
    """The indices of the tokens of function bodies."""
    inside, i = set(), 0
    while i < len(tokens):
        if tokens[i].text == "{" and i in pairs:
            if i and tokens[i - 1].text == ")":
                inside.update(range(i + 1, pairs[i]))
            i = pairs[i]
        i += 1
    return inside


# Minimum or maximum of two: the same with and without equality.
BOUND = re.compile(r"""if\ \((?P<a>[^()=<>?]+)\ [<>]=?\ (?P<b>[^()=<>?]+)\)\s+((?P=a)\ =\ (?P=b)|(?P=b)\ =\ (?P=a));
                     | (?P<c>[\w.>\[\]-]+)\ [<>]=?\ (?P<d>[\w.>\[\]-]+)\ \?\ ((?P=c)\ :\ (?P=d)|(?P=d)\ :\ (?P=c))\b""", re.X)


class Source:
    def __init__(self, path, text):
        self.path, self.text = path, text
        self.tokens = tokens_of(text)
        self.pairs = partners(self.tokens)
        self.inside = inside_functions(self.tokens, self.pairs)
        self.mutants = []
        self.bounds = [found.span() for found in BOUND.finditer(text)]
        ignored = set()
        for i, token in enumerate(self.tokens):
            if token.kind == "word" and IGNORED.match(token.text) and i + 1 in self.pairs and self.tokens[i + 1].text == "(":
                ignored.update(range(i + 1, self.pairs[i + 1]))
            if token.text == "enum" and self.tokens[i + 1].text == "{":
                ignored.update(range(i, self.pairs[i + 1]))
        self.active = sorted(self.inside - ignored)
        self.in_brackets = set()
        for i, token in enumerate(self.tokens):
            if token.text in "([" and token.kind == "mark" and i in self.pairs:
                self.in_brackets.update(range(i, self.pairs[i]))

    def at(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def add(self, kind, start, end, new):
        line = self.text.count("\n", 0, start) + 1
        if self.text[start:end] != new:
            self.mutants.append(Mutant(self.path, line, kind, self.text[start:end], new, start, end))

    def statement_end(self, i):
        """The index of the ';' that ends the statement at token i, or None if it has a block."""
        while i < len(self.tokens) and self.at(i) != ";":
            if self.at(i) in "{}":
                return None
            i = self.pairs[i] + 1 if self.at(i) in "([" else i + 1
        return i

    def begins_statement(self, i):
        before = self.at(i - 1)
        if before in (";", "{", "}", "else", "do", ":"):
            return before != ":" or self.at(i - 2) != "?"
        if before == ")" and i - 1 in self.pairs:
            head = self.pairs[i - 1] - 1
            return self.at(head) in ("if", "for", "while")
        return False

    def is_size_of_buffer(self, i):
        """Whether token i lies in the brackets of a declaration such as "char text[64]"."""
        if not any(self.at(j) == "[" and self.pairs.get(j, 0) > i for j in range(max(i - 6, 0), i)):
            return False
        first = i
        while first - 1 in self.inside and self.at(first - 1) not in (";", "{", "}"):
            first -= 1
        words = [j for j in range(first, i) if self.at(j) not in ("const", "static", "struct", "unsigned", "*")]
        return len(words) > 2 and all(self.tokens[j].kind == "word" for j in words[:2]) and "=" not in map(self.at, words)

    def operator(self, i):
        token = self.tokens[i]
        spaced = self.text[token.start - 1] in " \n" and self.text[token.end] in " \n"
        table = {**RELATIONS, **ASSIGNMENTS}
        if token.text in ("<", "<=", ">", ">=") and any(start < token.start < end for start, end in self.bounds):
            return
        if token.text in table:
            self.add("relation" if token.text in RELATIONS else "assignment", token.start, token.end, table[token.text])
        elif token.text in ARITHMETIC and spaced:
            self.add("arithmetic", token.start, token.end, ARITHMETIC[token.text])
        elif token.text == "!":
            self.add("boolean", token.start, token.end, "")

    def number(self, i):
        token = self.tokens[i]
        found = re.fullmatch(r"(\d+)([uUlL]*)", token.text)
        if not found or self.at(i - 1) == "case" or token.text.startswith("0") and len(found.group(1)) > 1:
            return
        if self.at(i - 1) == "{" and self.at(i + 1) == "}" and token.text == "0" or self.is_size_of_buffer(i):
            return
        self.add("constant", token.start, token.end, str(int(found.group(1)) + 1) + found.group(2))

    def condition(self, i):
        close = self.pairs.get(i + 1)
        if self.at(i + 1) != "(" or close is None:
            return
        if any(self.at(j) in RELATIONS or self.at(j) == "!" for j in range(i + 2, close)):
            return  # changed by other rules
        start, end = self.tokens[i + 1].end, self.tokens[close].start
        self.add("condition", start, end, "!(" + self.text[start:end] + ")")

    def statement(self, i):
        token = self.tokens[i]
        end = self.statement_end(i)
        if end is None:
            return
        first, last = token.start, self.tokens[end].end
        if token.text == "return":
            value = self.text[self.tokens[i + 1].start:self.tokens[end].start] if end > i + 1 else ""
            opposite = {"true": "false", "false": "true"}
            if value in opposite:
                self.add("return", first, last, f"return {opposite[value]};")
            elif value == "status" or re.match(r"\w*fail\w*\(", value):
                self.add("return", first, last, "return CLEAT_OK;")
        elif token.text in ("break", "continue"):
            self.add("jump", first, last, "break;" if token.text == "continue" else ";")
        elif token.text in ("++", "--"):
            self.add("deleted", first, last, ";")
        elif token.kind == "word" and token.text not in NOT_CALLS and token.text != "goto":
            self.call_or_assignment(i, end)

    def call_or_assignment(self, i, end):
        name, first, last = self.at(i), self.tokens[i].start, self.tokens[end].end
        if self.at(i + 1) == "(":
            if self.pairs.get(i + 1) == end - 1 and not RELEASES.match(name) and not IGNORED.match(name):
                self.add("deleted", first, last, ";")
            return
        j = i
        while self.at(j) not in (";", "=") and not self.at(j) in ASSIGNMENTS:
            if self.at(j) in "([":
                j = self.pairs[j]
            elif self.tokens[j].kind == "word" and self.tokens[j + 1].kind == "word":
                return  # a declaration
            elif self.at(j) == "*":
                return
            j += 1
        if j < end or self.at(end - 1) in ("++", "--"):
            self.add("deleted", first, last, ";")

    def arguments(self, i):
        """Two plain arguments of one call, swapped."""
        if self.at(i + 1) != "(" or self.at(i) in NOT_CALLS or RELEASES.match(self.at(i)) or IGNORED.match(self.at(i)):
            return
        a, comma, b, after = (self.tokens[k] for k in range(i + 2, i + 6))
        if a.kind == b.kind == "word" and comma.text == "," and after.text in ",)":
            self.add("exchanged", a.start, b.end, self.text[b.start:b.end] + ", " + self.text[a.start:a.end])

    def all(self):
        for i in self.active:
            token = self.tokens[i]
            if token.kind == "mark":
                self.operator(i)
            elif token.kind == "number":
                self.number(i)
            elif token.text in ("if", "while"):
                self.condition(i)
            elif token.kind == "word":
                self.arguments(i)
            if i not in self.in_brackets and self.begins_statement(i) and token.text not in "{}":
                self.statement(i)
        return self.mutants


def draw(sources, seed):
    """All mutants of the sources (path, text), in an order determined by the seed."""
    mutants = []
    for path, text in sources:
        mutants += Source(path, text).all()
    random.Random(seed).shuffle(mutants)
    return mutants
