"""From the papers' dialect to tokens that sqlglot parses.

The text is tokenised once and the token list is rewritten, so that every token keeps its place in the user's text and
errors point there. Four rewrites, in this order:

1. spelling: `GROUP-BY`, `GROUPBY` and the union sign;
2. window clauses in square brackets are taken out and a marker is put first in the select list they belong to;
3. `FROM a UNION b` (bag union of streams) becomes a sub-query with `UNION ALL`;
4. a comma left before `WHERE` by a removed clause is dropped.
"""

from __future__ import annotations

from sqlglot import Dialect, exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import QueryError
from penstock.query.clause import KEYWORDS, ClauseReader, WindowClause, column_of

MARKER = "__window_clause"
_SPARK = Dialect.get_or_raise("spark")
_AFTER_FROM = {
    TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT, TokenType.SELECT,
    TokenType.SEMICOLON,
}  # fmt: skip


def parse(sql: str) -> tuple[exp.Expr, list[WindowClause]]:
    """The syntax tree and the window clauses that its markers refer to by number."""
    if not sql.strip():
        raise QueryError("The query is empty.", hint="write SELECT … FROM …")
    try:
        tokens = _spelling(_SPARK.tokenize(sql))
    except TokenError as error:
        raise QueryError("The query cannot be read.", got=str(error).splitlines()[0]) from None
    tokens, clauses = _take_clauses(tokens, sql)
    tokens = _stream_unions(_drop_commas(tokens))
    try:
        trees = [t for t in _SPARK.parser().parse(tokens, sql) if t is not None]
    except ParseError as error:
        raise _syntax_error(error, sql) from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise QueryError("One SELECT is expected.", got=sql.strip().splitlines()[0][:60])
    return trees[0], clauses


def _syntax_error(error: ParseError, sql: str) -> QueryError:
    first = error.errors[0] if error.errors else {}
    line, end = first.get("line") or 0, first.get("col") or 0
    text = str(first.get("highlight") or "")
    return QueryError(
        "The query does not parse.",
        sql=sql,
        line=line,
        column=max(end - len(text) + 1, 1),
        got=str(first.get("description") or error).rstrip("."),
    )


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
        elif token.text == "∪":
            result.append(_like(token, TokenType.UNION, "UNION"))
        else:
            result.append(token)
        i += 1
    return result


def _like(token: Token, kind: TokenType, text: str) -> Token:
    """A token of our own at the place of another."""
    return Token(kind, text, token.line, token.col, token.start, token.end, [])


def _take_clauses(tokens: list[Token], sql: str) -> tuple[list[Token], list[WindowClause]]:
    clauses: list[WindowClause] = []
    result: list[Token] = []
    # One entry per open parenthesis: where markers of its SELECT go, and whether its FROM has been passed.
    scopes: list[list[int | bool]] = [[-1, False]]
    i = 0
    closing: int | None = None
    while i < len(tokens):
        token = tokens[i]
        kind = token.token_type
        if kind == TokenType.L_BRACKET:
            closing = next((j for j in range(i, len(tokens)) if tokens[j].token_type == TokenType.R_BRACKET), None)
        # One known word makes it a window clause, so that a misspelt one among them is told as such.
        if kind == TokenType.L_BRACKET and any(t.text.upper() in KEYWORDS for t in tokens[i + 1 : closing]):
            if closing is None:
                raise QueryError(
                    "The window clause is not closed.", sql=sql, line=token.line, column=column_of(token), got="no ']'"
                )
            place, after_from = scopes[-1]
            if place < 0 or not result:
                raise QueryError(
                    "A window clause stands outside a SELECT.", sql=sql, line=token.line, column=column_of(token)
                )
            reader = ClauseReader(tokens[i + 1 : closing], token, sql)
            clauses.append(reader.read(after_stream=bool(after_from), follows=result[-1].end))
            marker = [
                _like(token, TokenType.VAR, MARKER), _like(token, TokenType.L_PAREN, "("),
                _like(token, TokenType.NUMBER, str(len(clauses) - 1)), _like(token, TokenType.R_PAREN, ")"),
                _like(token, TokenType.COMMA, ","),
            ]  # fmt: skip
            result[int(place) : int(place)] = marker
            i = closing + 1
            continue
        result.append(token)
        if kind == TokenType.L_PAREN:
            scopes.append([-1, False])
        elif kind == TokenType.R_PAREN and len(scopes) > 1:
            scopes.pop()
        elif kind == TokenType.SELECT:
            scopes[-1] = [len(result), False]
        elif kind in (TokenType.DISTINCT, TokenType.ALL) and scopes[-1][0] == len(result) - 1:
            scopes[-1][0] = len(result)
        elif kind == TokenType.FROM:
            scopes[-1][1] = True
        i += 1
    return result, clauses


def _drop_commas(tokens: list[Token]) -> list[Token]:
    return [
        t
        for t, following in zip(tokens, [*tokens[1:], None], strict=True)
        if not (t.token_type == TokenType.COMMA and (following is None or following.token_type == TokenType.WHERE))
    ]


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
    operand, i = _operand(tokens, start)
    if operand is None:
        return None, start
    at = tokens[start]
    parts = [operand]
    while i < len(tokens) and tokens[i].token_type == TokenType.UNION:
        j = i + 1
        if j < len(tokens) and tokens[j].token_type == TokenType.ALL:
            j += 1
        following, end = _operand(tokens, j)
        if following is None:
            break
        parts.append(following)
        i = end
    if len(parts) == 1:
        # A lone stream needs no rewriting, but one in parentheses does.
        return (parts[0], i) if tokens[start].token_type == TokenType.L_PAREN else (None, start)
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
    return [*body, _like(at, TokenType.R_PAREN, ")")], i


def _operand(tokens: list[Token], start: int) -> tuple[list[Token] | None, int]:
    """A stream's name, or unions of streams in parentheses."""
    if start >= len(tokens):
        return None, start
    token = tokens[start]
    if token.token_type == TokenType.L_PAREN:
        inner, i = _union_chain(tokens, start + 1)
        if inner is None:
            name, i = _operand(tokens, start + 1)
            inner = name
        if inner is None or i >= len(tokens) or tokens[i].token_type != TokenType.R_PAREN:
            return None, start
        return inner, i + 1
    if token.token_type in (TokenType.VAR, TokenType.IDENTIFIER):
        return [token], start + 1
    return None, start
