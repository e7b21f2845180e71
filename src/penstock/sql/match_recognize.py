"""The part of MATCH_RECOGNIZE that says what a pattern says, read as one.

SQL's row patterns are of rows that stand next to each other, unless something may stand between them. So a sequence of
steps is `PATTERN (A X*? B)`: X is any row (or, of two steps, one for which its definition holds), and as few of them as
possible. After a match the search goes on with the next row, which is the continuous context, or past the last row of
the match, which is the cumulative one, of whose rows the first of each step are the match. `WITHIN` is less than that
long, as in Flink. Rows of one time, whose order the standard leaves open, do not follow one another.

What else there is (rows next to each other, greedy and other quantifiers, alternatives, PREV, aggregates over a match,
all rows of a match) is refused by its name, with what to write.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import QueryError
from penstock.model.time import TIME_UNITS, Span, make_span
from penstock.sql.pattern_syntax import Over, OverNode, PatternNode, PatternParser, StepNode

MATCH = "MATCH_RECOGNIZE"
_FORM = "PATTERN (A X*? B) WITHIN INTERVAL '5' MINUTE"
_OTHER_ROWS = "what a row has in common with others is asked of what was found: SEQ(a, b) … WHERE b.x > a.x"
_OF_MATCHES = {
    **dict.fromkeys(("PREV", "NEXT"), _OTHER_ROWS),
    "MATCH_NUMBER": "leave it out: matches have no order but their times",
    "CLASSIFIER": "leave it out: a column is that of the step that it is named after",
}
_SAME = ("FIRST", "LAST", "FINAL")
_SKIPS = {"TO NEXT ROW": "continuous", "PAST LAST ROW": "cumulative"}
_QUANTIFIERS = {"*", "+", "?", "{"}


@dataclass
class Match:
    """What MATCH_RECOGNIZE says, as far as it was read."""

    opening: Token
    partition: list[exp.Expr] = field(default_factory=list)
    order: exp.Expr | None = None
    measures: list[exp.Expr] = field(default_factory=list)
    skip: str = "cumulative"
    steps: list[Token] = field(default_factory=list)
    gaps: dict[str, Token] = field(default_factory=dict)
    """Variables that stand for what is between two steps."""
    within: Span | None = None
    define: dict[str, exp.Expr] = field(default_factory=dict)


class MatchParser(PatternParser):
    """Reads MATCH_RECOGNIZE after what FROM names, as a sub-query over a pattern."""

    def _is_match(self) -> bool:
        return self._curr.text.upper() == MATCH and self._next.token_type == TokenType.L_PAREN

    def _parse_table_alias(self, *args: Any, **options: Any) -> exp.TableAlias | None:
        """Another name of a relation, which is not the word."""
        return None if self._is_match() else super()._parse_table_alias(*args, **options)

    def _parse_match_of(self, table: exp.Expr) -> exp.Expr:
        match = Match(self._curr)
        self._advance()
        self._match_l_paren()
        if self._match(TokenType.PARTITION_BY):
            match.partition = self._parse_csv(self._parse_column)
        self._order_of(match)
        if self._match_text_seq("MEASURES"):
            match.measures = self._parse_csv(self._parse_measure)
        self._rows_and_skip(match)
        self._pattern_of(match)
        self._within_of(match)
        if self._curr.text.upper() == "SUBSET":
            raise self._misread_match("SUBSET", self._curr, "name the steps one by one")
        if self._match_text_seq("DEFINE"):
            self._parse_csv(lambda: self._parse_definition(match))
        self._match_r_paren()
        made = self._as_query(match, table)
        made.set("alias", self._parse_table_alias())
        return made

    def _misread_match(self, part: str, token: Token, hint: str) -> QueryError:
        what = f"This part of {MATCH} is not supported."
        return self._misread_pattern(what, token, got=part, hint=hint)

    # Its parts

    def _order_of(self, match: Match) -> None:
        at = self._curr
        if not self._match(TokenType.ORDER_BY):
            raise self._misread_pattern(f"{MATCH} needs an order.", at, got=at.text, hint="ORDER BY the stream's time")
        match.order = self._parse_column()
        self._match_text_seq("ASC")
        at = self._curr
        if at.token_type == TokenType.COMMA or at.text.upper() in ("DESC", "NULLS"):
            raise self._misread_match(
                f"ORDER BY … {at.text}", at, "ORDER BY the stream's time alone: rows of one time do not follow another"
            )

    def _parse_measure(self) -> exp.Expr | None:
        while self._curr.text.upper() in ("FINAL", "RUNNING") and self._next.token_type != TokenType.DOT:
            self._advance()
        at, value = self._curr, self._parse_assignment()
        name = self._parse_id_var(any_token=True) if self._match(TokenType.ALIAS) else None
        if name is None:
            raise self._misread_pattern("A measure has a name.", at, got=at.text, hint="write B.x AS x")
        return self.expression(exp.Alias(this=value, alias=name), at)

    def _rows_and_skip(self, match: Match) -> None:
        at = self._curr
        if self._match_text_seq("ALL", "ROWS", "PER", "MATCH"):
            raise self._misread_match("ALL ROWS PER MATCH", at, "ONE ROW PER MATCH, with the columns in MEASURES")
        self._match_text_seq("ONE", "ROW", "PER", "MATCH")
        if self._match_text_seq("AFTER", "MATCH", "SKIP"):
            at, words = self._curr, list[str]()
            while self._curr.text.upper() not in ("PATTERN", "") and len(words) < 4:
                words.append(self._curr.text.upper())
                self._advance()
            said = " ".join(words)
            if said not in _SKIPS:
                hint = "SKIP TO NEXT ROW or SKIP PAST LAST ROW; other contexts are written SEQ(a, b) … MODE …"
                raise self._misread_match(f"AFTER MATCH SKIP {said}", at, hint)
            match.skip = _SKIPS[said]

    def _pattern_of(self, match: Match) -> None:
        at = self._curr
        if not self._match_text_seq("PATTERN"):
            raise self._misread_pattern(f"{MATCH} needs a pattern.", at, got=at.text, hint=_FORM)
        self._match_l_paren()
        follows = True  # what comes next may be a step
        while self._curr.token_type not in (TokenType.R_PAREN, TokenType.SENTINEL):
            name = self._curr
            if name.token_type not in (TokenType.VAR, TokenType.IDENTIFIER) or name.text.upper() == "PERMUTE":
                hint = f"steps one after the other: {_FORM}; or SEQ(a, b, NOT c)"
                raise self._misread_match(f"PATTERN (… {name.text} …)", name, hint)
            self._advance()
            quantifier = self._quantifier()
            if quantifier == "*?" and match.steps and not follows:
                match.gaps[name.text.lower()] = name
                follows = True
            elif quantifier:
                hint = f"as few rows as possible between two steps, and one of each step: {_FORM}"
                raise self._misread_match(f"PATTERN (… {name.text}{quantifier} …)", name, hint)
            elif not follows:
                hint = f"let rows stand between them, {_FORM}: rows that stand next to each other are no pattern here"
                raise self._misread_match(f"PATTERN (… {match.steps[-1].text} {name.text} …)", name, hint)
            else:
                match.steps.append(name)
                follows = False
        closing = self._curr
        self._match_r_paren()
        if len(match.steps) < 2 or follows:
            got = " ".join(step.text for step in match.steps)
            raise self._misread_pattern("A pattern is of two steps or more, and ends with one.", closing, got, _FORM)

    def _quantifier(self) -> str:
        found = ""
        while self._curr.text and self._curr.text[0] in _QUANTIFIERS and self._curr.token_type != TokenType.IDENTIFIER:
            found += self._curr.text
            self._advance()
        return found

    def _within_of(self, match: Match) -> None:
        if not self._match_text_seq("WITHIN"):
            raise self._misread_pattern(
                "Nothing says how long a match may take, so rows that wait could never be given up.", match.opening,
                got=f"{MATCH} without WITHIN", hint=f"write {_FORM}",
            )  # fmt: skip
        self._match(TokenType.INTERVAL)
        number, unit = self._curr, self._next
        self._advance()
        word = unit.text.lower()
        if word in TIME_UNITS:
            self._advance()
        if not number.text.isdigit():
            raise self._misread_pattern(
                "WITHIN takes a length of time.", number, got=f"{number.text} {unit.text}", hint=_FORM
            )
        match.within = make_span(number.text, word if word in TIME_UNITS else "")

    def _parse_definition(self, match: Match) -> exp.Expr | None:
        name = self._curr
        self._advance()
        self._match(TokenType.ALIAS)
        condition = self._parse_disjunction()
        variable = name.text.lower()
        if variable not in {step.text.lower() for step in match.steps} | match.gaps.keys():
            known = ", ".join(step.text for step in match.steps)
            raise self._misread_pattern("There is no such step to define.", name, got=name.text, hint=f"it has {known}")
        if variable in match.gaps and len(match.steps) > 2:
            hint = "SEQ(a, NOT x, b, c) has what must not come between two steps"
            raise self._misread_match(f"DEFINE {name.text} among more than two steps", name, hint)
        if condition is not None:
            match.define[variable] = condition
        return condition

    # As a query

    def _as_query(self, match: Match, table: exp.Expr) -> exp.Expr:
        """`SELECT measures FROM SEQ(…)`, in parentheses."""
        names = [step.text for step in match.steps]
        if len({name.lower() for name in names}) < len(names):
            twice = next(step for step in match.steps if [n.lower() for n in names].count(step.text.lower()) > 1)
            raise self._misread_pattern("A step is there twice.", twice, got=twice.text, hint="give each a name")
        steps, where = [], []
        for at, step in enumerate(match.steps):
            steps.append(self._step_of(table, step, negated=False))
            own = match.define.get(step.text.lower())
            where += [] if own is None else [self._of_step(own, step.text)]
            gap = list(match.gaps.values())[at] if at < len(match.gaps) else None
            held = match.define.get(gap.text.lower()) if gap is not None else None
            if gap is not None and held is not None:
                steps.append(self._step_of(table, gap, negated=True))
                sure = exp.Coalesce(this=exp.Paren(this=self._of_step(held, gap.text)), expressions=[exp.false()])
                where.append(exp.Not(this=sure))
        over = Over(match.within, "FOLLOWING", names[0], is_less=True)
        pattern = PatternNode(
            steps=steps,
            partition=match.partition,
            over=self.expression(OverNode(this=over), match.opening),
            mode=self.expression(exp.Var(this=match.skip), match.opening),
            order=match.order,
        )
        items = [*self._of_partition(match), *(self._measured(each, match) for each in match.measures)]
        if not items:
            raise self._misread_pattern("A match has no columns.", match.opening, got="no MEASURES", hint="B.x AS x")
        made = exp.Select(expressions=items, from_=exp.From(this=self.expression(pattern, match.opening)))
        if where:
            made.set("where", exp.Where(this=exp.and_(*where, copy=False, wrap=True) if len(where) > 1 else where[0]))
        return self.expression(exp.Subquery(this=made), match.opening)

    def _step_of(self, table: exp.Expr, name: Token, *, negated: bool) -> exp.Expr:
        read = table.copy()
        read.set("alias", exp.TableAlias(this=self.expression(exp.Identifier(this=name.text), name)))
        return self.expression(StepNode(this=read, negated=negated), name)

    def _of_step(self, condition: exp.Expr, name: str) -> exp.Expr:
        """A definition, of columns of its own step alone."""
        self._refuse_calls(condition)
        for column in condition.find_all(exp.Column):
            table = column.args.get("table")
            if table is None:
                column.set("table", exp.to_identifier(name))
            elif table.name.lower() != name.lower():
                raise self._at_node(
                    f"DEFINE {name} AS … {table.name}.{column.name}", column, f"of one row alone; {_OTHER_ROWS}"
                )
        return condition

    def _of_partition(self, match: Match) -> Iterable[exp.Expr]:
        """The columns of the partition come first, as those of the last step."""
        for column in match.partition:
            made = exp.Column(this=column.this.copy(), table=exp.to_identifier(match.steps[-1].text))
            yield exp.Alias(this=made, alias=column.this.copy())

    def _measured(self, measure: exp.Expr, match: Match) -> exp.Expr:
        """A measure: of steps whose rows are collected, the first one's."""
        for call in [*measure.find_all(exp.First, exp.Last, exp.Anonymous)]:
            is_same = isinstance(call, exp.First | exp.Last) or call.name.upper() in _SAME
            inside = call.expressions if isinstance(call, exp.Anonymous) else [call.this]
            if is_same and len(inside) == 1 and isinstance(inside[0], exp.Column):
                call.replace(inside[0])  # a step has one row
        self._refuse_calls(measure)
        steps = [step.text.lower() for step in match.steps]
        for column in [*measure.find_all(exp.Column)]:
            table = column.args.get("table")
            if table is None or table.name.lower() not in steps:
                got = column.name if table is None else f"{table.name}.{column.name}"
                hint = f"columns of a step: {match.steps[-1].text}.{column.name}"
                raise self._at_node(f"MEASURES … {got}", column, hint)
            if match.skip == "cumulative" and table.name.lower() != steps[-1]:
                first = exp.Anonymous(this="element_at", expressions=[column.copy(), exp.Literal.number(1)])
                column.replace(first)
        return measure

    def _refuse_calls(self, tree: exp.Expr) -> None:
        for call in tree.find_all(exp.Func):
            name = (call.name if isinstance(call, exp.Anonymous) else call.sql_name()).upper()
            if name in _OF_MATCHES:
                raise self._at_node(f"{name}(…)", call, _OF_MATCHES[name])
            if isinstance(call, exp.AggFunc):
                hint = "a step has one row; SEQ(a, b) … MODE CUMULATIVE collects those of a step"
                raise self._at_node(f"{name}(…)", call, hint)

    def _at_node(self, part: str, node: exp.Expr, hint: str) -> QueryError:
        starts = [int(m["start"]) for each in node.walk() if "start" in (m := each.meta)]
        at = self.sql[: min(starts, default=0)]
        what = f"This part of {MATCH} is not supported."
        return QueryError(
            what, sql=self.sql, line=at.count("\n") + 1, column=len(at) - at.rfind("\n"), got=part, hint=hint
        )
