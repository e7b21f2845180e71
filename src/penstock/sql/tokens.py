"""From the papers' dialect to tokens that sqlglot parses.

The text is tokenised once and the token list is rewritten, so that every token keeps its place in the user's text and
errors point there. Two rewrites, in this order:

1. spelling: `GROUP-BY`, `GROUPBY` and the union sign; the bracket that opens a window clause gets a kind of its own;
2. `FROM a UNION b` (bag union of streams) becomes a sub-query with `UNION ALL`.

Window clauses are read by the parser (`dialect.py`), where they stand.
"""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import QueryError
from penstock.sql.aggregate_names import CALLED
from penstock.sql.clause import KEYWORDS, OPENING
from penstock.sql.dialect import DIALECT, NESTING, line_and_column
from penstock.sql.refusals import instead_of_statement, instead_of_text
from penstock.sql.shape import check_expression, check_query
from penstock.sql.window_names import WINDOW_FUNCTIONS, what_to_write

LONGEST = 200_000
_AFTER_FROM = {
    TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT, TokenType.SELECT,
    TokenType.SEMICOLON,
}  # fmt: skip
_TOKEN = re.compile(r"<Token token_type: TokenType\.(\w+), text: (.*?), line: .*?>")
"""How the parser shows a token."""
_OF_THE_PARSER = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]+\.(\w+)'>")
_STARTS = {TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN, TokenType.L_BRACKET, OPENING}
_OPENS = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE, OPENING}
_CLOSES = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END}
_WORDS_OF_WINDOWS = {TokenType.WINDOW, TokenType.SESSION}
_PREFIXES = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE, TokenType.INTERVAL}


def parse(sql: str) -> exp.Query:
    """The syntax tree, in which window clauses are arguments of what they follow."""
    tokens = _spelling(tokens_of(sql))
    if not tokens:
        raise QueryError("The query is empty.", sql=sql, line=1, column=1, hint="write SELECT … FROM …")
    _check_one_query(tokens, sql)
    _check_nesting(tokens, sql)
    _refuse_tables_of_windows(tokens, sql)
    trees = _trees(_stream_unions(tokens), sql)
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        first = tokens[0].text[:60]
        raise _error("One SELECT is expected.", tokens[0], sql, got=first, hint=instead_of_statement(first))
    return trees[0]


def other_meaning(name: str) -> str | None:
    """What SQL takes a call of that name for, as text; None if the name is free for a function of the user's."""
    if name.lower() in WINDOW_FUNCTIONS:
        return "a window"
    if name.lower() in CALLED:
        return "an aggregate"
    try:
        tree = parse(f"SELECT {name}(x) AS y FROM z")
    except QueryError:
        return "a word of SQL"
    called = tree.expressions[0].this if tree.expressions and isinstance(tree.expressions[0], exp.Alias) else None
    if isinstance(called, exp.Anonymous) and called.name.lower() == name.lower():
        return None
    return "a word of SQL" if called is None else called.sql(DIALECT)


def _check_one_query(tokens: list[Token], sql: str) -> None:
    ends = (at for at, token in enumerate(tokens) if token.token_type == TokenType.SEMICOLON)
    beyond = next((tokens[at + 1] for at in ends if at + 1 < len(tokens)), None)
    if beyond is not None or tokens[0].token_type not in _STARTS:
        at = beyond or tokens[0]
        hint = "give several statements to flow.sql(…)" if beyond else instead_of_statement(at.text)
        raise _error("One SELECT is expected.", at, sql, got=at.text[:60], hint=hint)


def parse_expression(text: str) -> exp.Expr:
    """The syntax tree of an expression that stands by itself."""
    tokens = tokens_of(text)
    if not tokens:
        raise QueryError("The expression is empty.", sql=text, line=1, column=1)
    _check_nesting(tokens, text)
    trees = _trees(tokens, text)
    if len(trees) != 1:
        raise QueryError("One expression is expected.", sql=text, line=1, column=1, got=text[:60])
    return trees[0]


def check_shape(sql: str) -> None:
    """Refuse a query that was read, but has something in it that the parser passed over."""
    check_query(_spelling(tokens_of(sql)), sql)


def check_shape_of_expression(text: str) -> None:
    """Refuse an expression that was read, but has something in it that the parser passed over."""
    check_expression(tokens_of(text), text)


def tokens_of(sql: str) -> list[Token]:
    """The tokens of a text, as they are written."""
    if len(sql) > LONGEST:
        raise QueryError(
            "The query is too long.", sql=sql[:80], line=1, column=1, got=f"{len(sql):,} characters",
            hint=f"write it with less than {LONGEST:,}",
        )  # fmt: skip
    try:
        sql.encode()
    except UnicodeEncodeError as error:
        line, column = line_and_column(sql, error.start)
        raise QueryError(
            "The query holds a character that is none.", sql=sql.encode(errors="replace").decode(), line=line,
            column=column, got=ascii(sql[error.start]), hint="a surrogate must stand in a pair",
        ) from None  # fmt: skip
    try:
        return DIALECT.tokenize(sql)
    except TokenError as error:
        told = str(error.__cause__ or error)
        found = re.search(r" from \d+:(\d+)", told)
        line, column = line_and_column(sql, min(int(found[1]), len(sql)) if found else 0)
        got = told.partition(" from ")[0].splitlines()[0]
        raise QueryError("The query cannot be read.", sql=sql, line=line, column=column, got=got) from None


def _trees(tokens: list[Token], sql: str) -> list[exp.Expr]:
    parser = DIALECT.parser()
    try:
        return [t for t in parser.parse(tokens, sql) if t is not None]
    except ParseError as error:
        raise _syntax_error(error, tokens, sql) from None
    except (SqlglotError, RecursionError, AttributeError, LookupError, TypeError, ValueError) as error:
        # The parser is not ours, and trips over some texts that are no SQL instead of saying so.
        at = getattr(parser, "_curr", None) or getattr(parser, "_prev", None) or tokens[-1]
        raise _error("The query does not parse.", at, sql, got=at.text[:60] or type(error).__name__) from None


def _error(what: str, token: Token, sql: str, got: str = "", hint: str = "") -> QueryError:
    line, column = line_and_column(sql, token.start)
    return QueryError(what, sql=sql, line=line, column=column, got=got, hint=hint)


def _syntax_error(error: ParseError, tokens: list[Token], sql: str) -> QueryError:
    first = error.errors[0] if error.errors else {}
    said = _TOKEN.sub(_token_in_words, str(first.get("description") or error).rstrip("."))
    got = _OF_THE_PARSER.sub(r"a part of \1 is missing", said)[:200]
    line, end = first.get("line") or 0, first.get("col") or 0
    if not line:
        return _error("The query does not parse.", tokens[-1], sql, got=got)
    column = max(end - len(str(first.get("highlight") or "")) + 1, 1)
    before = [token.text for token in tokens if (token.line, token.col) <= (line, end)]
    return QueryError(
        "The query does not parse.", sql=sql, line=line, column=column, got=got, hint=instead_of_text(before)
    )


def _token_in_words(shown: re.Match[str]) -> str:
    return "the end" if shown[1] == "SENTINEL" else f"{shown[2]!r}"


def _check_nesting(tokens: list[Token], sql: str) -> None:
    depth = prefixes = 0
    for token in tokens:
        kind = token.token_type
        depth += (kind in _OPENS) - (kind in _CLOSES)
        prefixes = prefixes + 1 if kind in _PREFIXES else 0
        if depth + prefixes > NESTING:
            raise _error(
                "The query is nested too deeply.", token, sql, got=f"more than {NESTING} levels",
                hint="use WITH for parts of it",
            )  # fmt: skip


def _refuse_tables_of_windows(tokens: list[Token], sql: str) -> None:
    """Say how a table of windows is written, where it stands bare after FROM: the parser would only stumble over it."""
    for before, token, following in zip(tokens, tokens[1:], tokens[2:], strict=False):
        called = before.token_type == TokenType.FROM and following.token_type == TokenType.L_PAREN
        if called and token.text.lower() in WINDOW_FUNCTIONS:
            hint = what_to_write(token.text)
            raise _error(f"{token.text} cannot stand here.", token, sql, got=token.text, hint=hint)


def _spelling(tokens: list[Token]) -> list[Token]:
    result: list[Token] = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        upper = token.text.upper()
        if upper == "GROUPBY" and token.token_type == TokenType.VAR:
            result.append(_like(token, TokenType.GROUP_BY, "GROUP BY"))
        elif upper == "GROUP" and [t.text.upper() for t in tokens[i + 1 : i + 3]] == ["-", "BY"]:
            result.append(_like(token, TokenType.GROUP_BY, "GROUP BY"))
            i += 2
        elif token.token_type in _WORDS_OF_WINDOWS and i + 1 < len(tokens) and tokens[i + 1].text == "(":
            result.append(_like(token, TokenType.VAR, token.text))  # a function, not what else the word can be
        elif token.text == "∪":
            result.append(_like(token, TokenType.UNION, "UNION"))
        elif token.token_type == TokenType.L_BRACKET and _opens_clause(tokens, i):
            result.append(_like(token, OPENING, "["))
        else:
            result.append(token)
        i += 1
    return result


def _opens_clause(tokens: list[Token], at: int) -> bool:
    """One known word makes it a window clause, so that a misspelt one among them is told as such."""
    for token in tokens[at + 1 :]:
        if token.token_type == TokenType.R_BRACKET:
            return False
        if token.text.upper() in KEYWORDS:
            return True
    return False


def _like(token: Token, kind: TokenType, text: str) -> Token:
    """A token of our own at the place of another."""
    return Token(kind, text, token.line, token.col, token.start, token.end, [])


def _stream_unions(tokens: list[Token]) -> list[Token]:
    """Rewrite unions of streams wherever an operand of FROM can stand."""
    result: list[Token] = []
    in_from: list[bool] = [False]
    i = 0
    while i < len(tokens):
        token = tokens[i]
        kind = token.token_type
        starts = kind == TokenType.FROM or (kind == TokenType.COMMA and in_from[-1])
        if kind == TokenType.FROM:
            in_from[-1] = True
        elif kind in _AFTER_FROM:
            in_from[-1] = False
        elif kind == TokenType.L_PAREN:
            in_from.append(False)
        elif kind == TokenType.R_PAREN and len(in_from) > 1:
            in_from.pop()
        result.append(token)
        i += 1
        if starts and i < len(tokens):
            rewritten, end = _union_chain(tokens, i)
            if rewritten is not None:
                result += rewritten
                i = end
    return result


def _union_chain(tokens: list[Token], start: int) -> tuple[list[Token] | None, int]:
    """`a UNION b …` from `start` as a sub-query, and where it ends; None if it is something else."""
    parts, end = _chain(tokens, start)
    # A lone stream needs no rewriting, but one in parentheses does.
    if not parts or (len(parts) == 1 and tokens[start].token_type != TokenType.L_PAREN):
        return None, start
    return _joined(parts, tokens[start]), end


def _chain(tokens: list[Token], start: int) -> tuple[list[list[Token]], int]:
    """The operands of a union of streams from `start` on, and where it ends; none if it is something else."""
    operand, i = _operand(tokens, start)
    parts = [] if operand is None else [operand]
    while parts and i < len(tokens) and tokens[i].token_type == TokenType.UNION:
        j = i + 1
        if j < len(tokens) and tokens[j].token_type == TokenType.ALL:
            j += 1
        following, end = _operand(tokens, j)
        if following is None:
            break
        parts.append(following)
        i = end
    return parts, i


def _joined(parts: list[list[Token]], at: Token) -> list[Token]:
    """One operand as it is, several as a sub-query."""
    if len(parts) == 1:
        return parts[0]
    body: list[Token] = [_like(at, TokenType.L_PAREN, "(")]
    for n, part in enumerate(parts):
        if n:
            body += [_like(part[0], TokenType.UNION, "UNION"), _like(part[0], TokenType.ALL, "ALL")]
        body += [
            _like(part[0], TokenType.SELECT, "SELECT"),
            _like(part[0], TokenType.STAR, "*"),
            _like(part[0], TokenType.FROM, "FROM"),
        ]
        body += part
    return [*body, _like(at, TokenType.R_PAREN, ")")]


def _operand(tokens: list[Token], start: int) -> tuple[list[Token] | None, int]:
    """A stream's name, or unions of streams in parentheses."""
    if start >= len(tokens):
        return None, start
    token = tokens[start]
    if token.token_type == TokenType.L_PAREN:
        parts, i = _chain(tokens, start + 1)
        if not parts or i >= len(tokens) or tokens[i].token_type != TokenType.R_PAREN:
            return None, start
        return _joined(parts, tokens[start + 1]), i + 1
    if token.token_type in (TokenType.VAR, TokenType.IDENTIFIER):
        return [token], start + 1
    return None, start
