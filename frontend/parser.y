/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar. Actions only build the tree; see docs/language.md for the language in words. */
%require "3.8"
%define api.pure full
%define api.prefix {frontend_}
%define api.location.type {struct loc}
%define parse.error custom
%define parse.lac full
%locations
%param {struct parser *p}
%initial-action { (void)yynerrs; } /* bison counts errors for those who ask */

%code requires {
#include "frontend/elsewhere.h"
#include "frontend/meant.h"
#include "frontend/parse.h"
}

%code provides {
/* The lexer's names for the same types. */
#define YYSTYPE FRONTEND_STYPE
#define YYLTYPE FRONTEND_LTYPE
int frontend_lex(FRONTEND_STYPE *value, struct loc *loc, struct parser *p);
}

%code {
#include <string.h>

#define YYLLOC_DEFAULT(result, rhs, n)                                           \
  (result) = (n) ? loc_join(YYRHSLOC(rhs, 1), YYRHSLOC(rhs, n))                  \
                 : (struct loc){YYRHSLOC(rhs, 0).source, YYRHSLOC(rhs, 0).end,   \
                                YYRHSLOC(rhs, 0).end}
#define YYMAXDEPTH 100000

static void frontend_error(const struct loc *loc, struct parser *p, const char *message);
}

%union {
  struct slice slice;
  struct expr *expr;
  struct args args;
  struct names names;
  struct params params;
  struct stmt *stmt;
  struct block block;
  enum def_kind def_kind;
}

%token END 0       "the end of the file"
%token NEWLINE     "the end of the line"
%token <slice> NAME "a name" INT "a number" FLOAT "a number with a point" STRING "a string"
%token <slice> BAD_NUMBER OPEN_POINT OPEN_STRING STRAY
%token USE "`use`" AS "`as`" LAYER "`layer`" FUNCTION "`function`" INITIALIZER "`initializer`"
%token OPTIMIZER "`optimizer`" MODEL "`model`" INPUT "`input`" VAR "`var`" STATE "`state`"
%token RETURN "`return`" FOR "`for`" SCAN "`scan`" IN "`in`" IF "`if`" ELSE "`else`"
%token <slice> TRAIN "`train`"
%token WITH "`with`" OVER "`over`" METRIC "`metric`" PREDICT "`predict`" DATA "`data`" ON "`on`"
%token STRATEGY "`strategy`"
%token AND "`and`" OR "`or`" NOT "`not`" TRUE_ "`true`" FALSE_ "`false`"
%token REST "`...`" TO "`..`" ASSIGN "`<-`" ADD "`+=`" EQ "`==`" NE "`!=`" LE "`<=`" GE "`>=`" POW "`^`"
%token '(' "`(`" ')' "`)`" '[' "`[`" ']' "`]`" '{' "`{`" '}' "`}`" ',' "`,`" ':' "`:`" '=' "`=`"
%token '+' "`+`" '-' "`-`" '*' "`*`" '/' "`/`" '%' "`%`" '@' "`@`" '<' "`<`" '>' "`>`" '.' "`.`"

%right IF
%left OR
%left AND
%precedence NOT
%nonassoc EQ NE '<' LE '>' GE
%left '+' '-'
%left '*' '/' '%' '@'
%precedence NEGATIVE
%right POW

%type <expr> expr postfix item bound place over
%type <args> args arg_list items item_list entries entry_list traits settings sequences sequence_list
%type <names> name names carried
%type <params> params param_list
%type <stmt> statement simple line conditional
%type <block> block lines
%type <def_kind> kind
%type <slice> split
%type <args> with

%%

file
  : toplevel
  | file NEWLINE toplevel
  ;

toplevel
  : %empty
  | use
  | definition
  | error
  ;

use
  : USE NAME                   { ast_use(p, @2, ast_text(p, @2, $2), false, NULL); }
  | USE NAME AS NAME           { ast_use(p, @2, ast_text(p, @2, $2), false, ast_text(p, @4, $4)); }
  | USE STRING AS NAME         { ast_use(p, @2, ast_string(p, @2, $2)->name, true, ast_text(p, @4, $4)); }
  ;

definition
  : kind NAME '(' params ')' with block  { ast_def(p, $1, @2, $2, $4, $6, $7); }
  | kind NAME with block                 { ast_def(p, $1, @2, $2, (struct params){0}, $3, $4); }
  ;

with
  : %empty                     { $$ = (struct args){0}; }
  | WITH NAME '=' expr
      { $$ = ast_args(p, (struct args){0}, loc_join(@2, @4), ast_text(p, @2, $2), $4); }
  ;

kind
  : LAYER                      { $$ = DEF_LAYER; }
  | FUNCTION                   { $$ = DEF_FUNCTION; }
  | INITIALIZER                { $$ = DEF_INITIALIZER; }
  | OPTIMIZER                  { $$ = DEF_OPTIMIZER; }
  | MODEL                      { $$ = DEF_MODEL; }
  ;

params
  : %empty                     { $$ = (struct params){0}; }
  | param_list
  | param_list ','
  ;

param_list
  : NAME                                    { $$ = ast_params(p, (struct params){0}, @1, $1, NULL, NULL); }
  | NAME ':' expr                           { $$ = ast_params(p, (struct params){0}, @1, $1, $3, NULL); }
  | NAME '=' expr                           { $$ = ast_params(p, (struct params){0}, @1, $1, NULL, $3); }
  | NAME ':' expr '=' expr                  { $$ = ast_params(p, (struct params){0}, @1, $1, $3, $5); }
  | param_list ',' NAME                     { $$ = ast_params(p, $1, @3, $3, NULL, NULL); }
  | param_list ',' NAME ':' expr            { $$ = ast_params(p, $1, @3, $3, $5, NULL); }
  | param_list ',' NAME '=' expr            { $$ = ast_params(p, $1, @3, $3, NULL, $5); }
  | param_list ',' NAME ':' expr '=' expr   { $$ = ast_params(p, $1, @3, $3, $5, $7); }
  ;

block
  : '{' lines '}'              { $$ = $2; }
  ;

lines
  : line                       { $$ = ast_block(p, (struct block){0}, $1); }
  | lines newline line         { $$ = ast_block(p, $1, $3); }
  ;

newline
  : NEWLINE                    { if (!p->inside) yyerrok; p->inside = false; } /* bison would wait for three tokens */
  ;

line
  : %empty                     { $$ = NULL; }
  | statement
  | error                      { $$ = NULL; }
  ;

statement
  : simple
  | simple ON place            { $$ = $1; $$->place = $3; }
  | FOR name IN expr block
      { $$ = ast_stmt(p, @1, STMT_FOR, $2, $4); $$->body = $5; }
  | FOR name IN expr TO expr block
      { $$ = ast_stmt(p, @1, STMT_FOR, $2, $4); $$->limit = $6; $$->body = $7; }
  | SCAN settings carried sequences block
      { $$ = ast_scan(p, @1, (struct names){0}, $2, $3, $4, $5); }
  | names '=' SCAN settings carried sequences block
      { $$ = ast_scan(p, loc_join(@1, @3), $1, $4, $5, $6, $7); }
  | conditional
  | DATA split '{' entries '}'
      { $$ = ast_stmt(p, @1, STMT_DATA, ast_names(p, (struct names){0}, @2, $2), NULL); $$->entries = $4; }
  | ON place block
      { $$ = ast_stmt(p, @1, STMT_ON, (struct names){0}, NULL); $$->place = $2; $$->body = $3; }
  ;

settings
  : %empty                     { $$ = (struct args){0}; }
  | '(' args ')'               { $$ = $2; }
  ;

carried
  : %empty                     { $$ = (struct names){0}; }
  | names
  ;

sequences
  : %empty                     { $$ = (struct args){0}; }
  | OVER sequence_list         { $$ = $2; }
  ;

sequence_list
  : NAME IN expr               { $$ = ast_args(p, (struct args){0}, @1, ast_text(p, @1, $1), $3); }
  | sequence_list ',' NAME IN expr
      { $$ = ast_args(p, $1, @3, ast_text(p, @3, $3), $5); }
  ;

simple
  : INPUT name ':' expr        { $$ = ast_stmt(p, @$, STMT_INPUT, $2, NULL); $$->type = $4; }
  | VAR name ':' expr '=' expr traits
      { $$ = ast_stmt(p, @$, STMT_VAR, $2, $6); $$->type = $4; $$->entries = $7; }
  | STATE name ':' expr '=' expr traits
      { $$ = ast_stmt(p, @$, STMT_STATE, $2, $6); $$->type = $4; $$->entries = $7; }
  | names '=' expr             { $$ = ast_stmt(p, @$, STMT_BIND, $1, $3); }
  | name ASSIGN expr           { $$ = ast_stmt(p, @$, STMT_ASSIGN, $1, $3); }
  | name ADD expr              { $$ = ast_stmt(p, @$, STMT_ADD, $1, $3); }
  | RETURN expr                { $$ = ast_stmt(p, @$, STMT_RETURN, (struct names){0}, $2); }
  | TRAIN expr WITH expr over
      { $$ = ast_stmt(p, @$, STMT_TRAIN, (struct names){0}, $2); $$->optimizer = $4; $$->over = $5; }
  | TRAIN name '=' expr WITH expr over
      { $$ = ast_stmt(p, @$, STMT_TRAIN, $2, $4); $$->optimizer = $6; $$->over = $7; }
  | METRIC name '=' expr       { $$ = ast_stmt(p, @$, STMT_METRIC, $2, $4); }
  | PREDICT name '=' expr      { $$ = ast_stmt(p, @$, STMT_PREDICT, $2, $4); }
  | STRATEGY postfix           { $$ = ast_stmt(p, @$, STMT_STRATEGY, (struct names){0}, $2); }
  ;

conditional
  : IF expr block              { $$ = ast_stmt(p, @1, STMT_IF, (struct names){0}, $2); $$->body = $3; }
  | IF expr block ELSE block
      { $$ = ast_stmt(p, @1, STMT_IF, (struct names){0}, $2); $$->body = $3; $$->otherwise = $5; }
  | IF expr block ELSE conditional
      { $$ = ast_stmt(p, @1, STMT_IF, (struct names){0}, $2); $$->body = $3;
        $$->otherwise = ast_block(p, (struct block){0}, $5); }
  ;

name
  : NAME                       { $$ = ast_names(p, (struct names){0}, @1, $1); }
  ;

names
  : name
  | names ',' NAME             { $$ = ast_names(p, $1, @3, $3); }
  ;

split
  : NAME
  | TRAIN
  ;

entries
  : %empty                     { $$ = (struct args){0}; }
  | entry_list
  | entry_list NEWLINE
  ;

entry_list
  : NAME '=' expr
      { $$ = ast_args(p, (struct args){0}, @$, ast_text(p, @1, $1), $3); }
  | error                      { $$ = (struct args){0}; }
  | entry_list NEWLINE error
  | entry_list NEWLINE NAME '=' expr
      { $$ = ast_args(p, $1, loc_join(@3, @5), ast_text(p, @3, $3), $5); }
  ;

traits
  : %empty                     { $$ = (struct args){0}; }
  | traits NAME '(' NAME ')'
      { $$ = ast_args(p, $1, loc_join(@2, @5), ast_text(p, @2, $2), ast_name(p, @4, $4)); }
  ;

over
  : %empty                     { $$ = NULL; }
  | OVER expr                  { $$ = $2; }
  ;

place
  : postfix
  ;

expr
  : postfix
  | expr OR expr               { $$ = ast_binary(p, @$, OPERATOR_OR, $1, $3); }
  | expr AND expr              { $$ = ast_binary(p, @$, OPERATOR_AND, $1, $3); }
  | expr EQ expr               { $$ = ast_binary(p, @$, OPERATOR_EQ, $1, $3); }
  | expr NE expr               { $$ = ast_binary(p, @$, OPERATOR_NE, $1, $3); }
  | expr '<' expr              { $$ = ast_binary(p, @$, OPERATOR_LT, $1, $3); }
  | expr LE expr               { $$ = ast_binary(p, @$, OPERATOR_LE, $1, $3); }
  | expr '>' expr              { $$ = ast_binary(p, @$, OPERATOR_GT, $1, $3); }
  | expr GE expr               { $$ = ast_binary(p, @$, OPERATOR_GE, $1, $3); }
  | expr '+' expr              { $$ = ast_binary(p, @$, OPERATOR_ADD, $1, $3); }
  | expr '-' expr              { $$ = ast_binary(p, @$, OPERATOR_SUB, $1, $3); }
  | expr '*' expr              { $$ = ast_binary(p, @$, OPERATOR_MUL, $1, $3); }
  | expr '/' expr              { $$ = ast_binary(p, @$, OPERATOR_DIV, $1, $3); }
  | expr '%' expr              { $$ = ast_binary(p, @$, OPERATOR_MOD, $1, $3); }
  | expr '@' expr              { $$ = ast_binary(p, @$, OPERATOR_MATMUL, $1, $3); }
  | expr POW expr              { $$ = ast_binary(p, @$, OPERATOR_POW, $1, $3); }
  | NOT expr                   { $$ = ast_unary(p, @$, OPERATOR_NOT, $2); }
  | '-' expr %prec NEGATIVE    { $$ = ast_unary(p, @$, OPERATOR_NEG, $2); }
  | expr IF expr ELSE expr %prec IF
                               { $$ = ast_conditional(p, @$, $1, $3, $5); }
  ;

postfix
  : NAME                       { $$ = ast_name(p, @1, $1); }
  | INT                        { $$ = ast_int(p, @1, $1); }
  | FLOAT                      { $$ = ast_float(p, @1, $1); }
  | STRING                     { $$ = ast_string(p, @1, $1); }
  | TRUE_                      { $$ = ast_bool(p, @1, true); }
  | FALSE_                     { $$ = ast_bool(p, @1, false); }
  | '(' expr ')'               { $$ = $2; }
  | '[' items ']'              { $$ = ast_items(p, @$, EXPR_LIST, NULL, $2); }
  | postfix '.' NAME           { $$ = ast_member(p, @$, $1, $3); }
  | postfix '(' args ')'       { $$ = ast_items(p, @$, EXPR_CALL, $1, $3); }
  | postfix '[' items ']'      { $$ = ast_items(p, @$, EXPR_INDEX, $1, $3); }
  ;

args
  : %empty                     { $$ = (struct args){0}; }
  | arg_list
  | arg_list ','
  ;

arg_list
  : expr                       { $$ = ast_args(p, (struct args){0}, @$, NULL, $1); }
  | NAME '=' expr              { $$ = ast_args(p, (struct args){0}, @$, ast_text(p, @1, $1), $3); }
  | arg_list ',' expr          { $$ = ast_args(p, $1, @3, NULL, $3); }
  | arg_list ',' NAME '=' expr
      { $$ = ast_args(p, $1, loc_join(@3, @5), ast_text(p, @3, $3), $5); }
  ;

items
  : %empty                     { $$ = (struct args){0}; }
  | item_list
  | item_list ','
  ;

item_list
  : item                       { $$ = ast_args(p, (struct args){0}, @$, NULL, $1); }
  | item_list ',' item         { $$ = ast_args(p, $1, @3, NULL, $3); }
  ;

item
  : expr
  | REST                       { $$ = ast_rest(p, @$, NULL); }
  | REST postfix               { $$ = ast_rest(p, @$, $2); }
  | bound ':' bound            { $$ = ast_range(p, @$, $1, $3, NULL); }
  | bound ':' bound ':' bound  { $$ = ast_range(p, @$, $1, $3, $5); }
  ;
bound
  : %empty                     { $$ = NULL; }
  | expr
  ;

%%

/* Only called when the parser's stack is full. */
static void frontend_error(const struct loc *loc, struct parser *p, const char *message) {
  (void)message;
  if (!p->fatal) diag_error(p->diags, *loc, "this is nested too deeply");
  p->fatal = true;
}

/* An expression can always go on: what could stand behind its end says more. */
static int drop_operators(yysymbol_kind_t *tokens, int n) {
  static const char *const binary[] = {"`if`", "`and`", "`or`", "`==`", "`!=`", "`<=`", "`>=`", "`^`", "`+`", "`-`",
                                       "`*`",  "`/`",   "`%`",  "`@`",  "`<`",  "`>`",  "`(`",  "`[`", "`.`"};
  enum { COUNT = sizeof binary / sizeof *binary };
  bool follows = false;
  int left = 0;
  for (int i = 0; i < n; i++) follows |= tokens[i] == YYSYMBOL_POW;
  for (int i = 0; i < n; i++) {
    bool drop = false;
    for (int k = 0; k < COUNT && follows; k++) drop |= strcmp(yysymbol_name(tokens[i]), binary[k]) == 0;
    if (!drop) tokens[left++] = tokens[i];
  }
  return left;
}

/* Where a name could stand, a word that the language has taken. */
static bool is_taken_word(const yypcontext_t *context, yysymbol_kind_t found, struct loc loc) {
  yysymbol_kind_t expected[YYNTOKENS];
  int n = yypcontext_expected_tokens(context, expected, YYNTOKENS);
  char c = loc.source->text[loc.begin];
  bool name = false;
  for (int i = 0; i < n; i++) name |= expected[i] == YYSYMBOL_NAME;
  return name && found != YYSYMBOL_NAME && loc.end > loc.begin && c >= 'a' && c <= 'z';
}

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"

/* `train x as loss`: a line of a statement, whose word has n letters, that names its value as Python does. */
static bool help_with_as(struct parser *p, const char *line, size_t n) {
  static const char *const letters = NAME_LETTERS "0123456789";
  const char *end = line + strcspn(line, "#\n"), *value = line + n + strspn(line + n, " \t"), *as = NULL;
  for (const char *c = value; c + 4 < end; c++)
    if (strncmp(c, " as ", 4) == 0) as = c;
  const char *name = as ? as + 3 + strspn(as + 3, " \t") : end, *behind = name + strspn(name, letters);
  if (name == behind || behind > end) return false;
  const char *first = value + strspn(value, letters), *rest = behind + strspn(behind, " \t\r");
  if (first[strspn(first, " \t")] == '=') return false; /* it has its name */
  if (rest < end && strncmp(rest, "with ", 5) != 0 && strncmp(rest, "on ", 3) != 0) return false;
  while (as > value && as[-1] == ' ') as--;
  while (end > behind && strchr(" \t\r", end[-1])) end--;
  bool fits = end - line < 100;
  diag_help(p->diags, LOC_NONE, "its name stands before its value: `%.*s %.*s = %.*s%.*s`", (int)n, line,
            (int)(behind - name), name, fits ? (int)(as - value) : 5, fits ? value : "value",
            fits ? (int)(end - behind) : 0, behind);
  return true;
}

/* Whether a line that begins with the word of n letters is followed by a block. */
static bool has_body(const char *word, size_t n) {
  static const char *const words[] = {"model", "layer", "function", "optimizer", "initializer", "for", "if", "else", "scan"};
  bool found = false;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    found |= strlen(words[i]) == n && strncmp(word, words[i], n) == 0;
  return found;
}

/* Help with what is usual elsewhere, and not here. True: it says what the whole line should be. */
static bool help_with_line(struct parser *p, yysymbol_kind_t found, struct loc loc) {
  const char *text = loc.source->text, *at = text + loc.begin, *line = at, *end = text + loc.source->len;
  while (line > text && line[-1] != '\n') line--;
  line += strspn(line, " \t");
  size_t n = strspn(line, NAME_LETTERS);
  const char *here = line <= at ? elsewhere_statement(line, n) : NULL;
  if (here) {
    diag_help(p->diags, LOC_NONE, "%s", here);
    return true;
  }
  if (help_meant(p->diags, p->arena, loc.source, loc.begin, p->depth, p->closed == loc.end)) return true;
  if (at[0] == '/' && (at[1] == '*' || at[1] == '/' || (at > text && at[-1] == '/')))
    diag_help(p->diags, LOC_NONE, "a comment begins with `#`%s",
              at > line + 1 ? "; `floor_div(a, b)` divides and rounds down" : "");
  bool result = (n == 7 && strncmp(line, "predict", n) == 0) || (n == 6 && strncmp(line, "metric", n) == 0);
  if ((result || (n == 5 && strncmp(line, "train", n) == 0)) && help_with_as(p, line, n)) return true;
  if (result && (found == YYSYMBOL_NEWLINE || at[0] == '('))
    diag_help(p->diags, LOC_NONE, "its name stands before its value: `%.*s name = value`", (int)n, line);
  bool variable = n == 3 && strncmp(line, "var", n) == 0;
  if (variable && (found == YYSYMBOL_NEWLINE || at[0] == '='))
    diag_help(p->diags, LOC_NONE, "a variable has a type and a first value: `var w : f32[3] = zeros()`");
  const char *behind = at[0] == ':' ? at + 1 + strspn(at + 1, " \t\r") : NULL;
  bool ends = behind && (behind == end || *behind == '\n' || *behind == '#');
  if (ends && has_body(line, n))
    diag_help(p->diags, LOC_NONE, "what belongs to it stands in `{ }`: `%.*s {`, and `}` behind the last line",
              (int)(at - line < 60 ? at - line : (long)n), line);
  else if (at[0] == ':' && line + n + strspn(line + n, " \t") == at)
    diag_help(p->diags, LOC_NONE, "write `%.*s = value`", (int)n, line);
  if (found == YYSYMBOL_NEWLINE && n == 5 && strncmp(line, "train", n) == 0)
    diag_help(p->diags, LOC_NONE, "an optimizer stands behind the loss: `train loss with adam(1e-3)`");
  return false;
}

/* A call in whose brackets the error is, if it is none here. */
static bool help_with_call(struct parser *p) {
  for (int i = p->depth; i > 0 && p->bracket[i] != '{'; i--) {
    const char *text = p->open[i].source->text, *end = text + p->open[i].begin, *word = end;
    while (word > text && (strchr(NAME_LETTERS "0123456789", word[-1]))) word--;
    const char *here = p->bracket[i] == '(' ? elsewhere_instead(word, (size_t)(end - word)) : NULL;
    if (here) diag_help(p->diags, LOC_NONE, "%s", here);
    if (here) return true;
  }
  return false;
}

/* Whether the line ends inside of brackets that the error is in: then the next ones go on, and are no lines. */
static bool is_left_open(const struct parser *p, struct loc loc) {
  int first = p->depth, open = 0;
  while (first > 1 && p->bracket[first - 1] != '{') first--;
  const char *at = loc.source->text + p->open[first].begin;
  for (; *at && (*at != '\n' || at < loc.source->text + loc.begin); at++)
    open += strchr("([", *at) ? 1 : strchr(")]", *at) ? -1 : 0;
  return open > 0;
}

/* Whether the rest of the line opens brackets that it does not close. */
static bool opens(struct loc loc) {
  int open = 0;
  for (const char *at = loc.source->text + loc.begin; *at && *at != '\n' && *at != '#'; at++)
    open += *at == '(' || *at == '[' ? 1 : *at == ')' || *at == ']' ? -1 : 0;
  return open > 0;
}

/* Whether what stands before ends a value. */
static bool is_behind_value(struct loc loc) {
  const char *text = loc.source->text, *at = text + loc.begin;
  while (at > text && strchr(" \t\r\n", at[-1])) at--;
  return at > text && strchr(NAME_LETTERS "0123456789)]\"", at[-1]);
}

/* Help where an open bracket holds what it cannot. */
static void help_in_bracket(struct parser *p, char bracket, yysymbol_kind_t token, char found, struct loc loc) {
  if (help_with_call(p)) return;
  bool value = token == YYSYMBOL_NAME || token == YYSYMBOL_INT || token == YYSYMBOL_FLOAT || token == YYSYMBOL_STRING;
  size_t len = loc.end - loc.begin;
  if (len == 2 && strncmp(loc.source->text + loc.begin, "is", len) == 0)
    diag_help(p->diags, LOC_NONE, "values are compared by `==` and `!=`");
  else if (value && is_behind_value(loc))
    diag_help(p->diags, LOC_NONE, "a comma stands between two: write one before `%.*s`", len < 40 ? (int)len : 40,
              loc.source->text + loc.begin);
  if (bracket == '[' && token == YYSYMBOL_FOR)
    diag_help(p->diags, LOC_NONE, "a list grows in a loop: `list = [...list, item]` in `for i in 0..n { }`");
  if (bracket == '(' && found == ':') diag_help(p->diags, LOC_NONE, "an argument is given by name as `name = value`");
  if (bracket == '(' && found == ',') diag_help(p->diags, LOC_NONE, "a list stands in `[ ]`");
  if (found == '/')
    diag_help(p->diags, LOC_NONE, "integers that divide are `a / b`; `floor_div(a, b)` of tensors rounds down");
  if (found == '{') diag_help(p->diags, LOC_NONE, "a list stands in `[ ]`, and arguments by name are `name = value`");
  if (found == '*') diag_help(p->diags, LOC_NONE, "a list's items are spread in another one: `[...list, item]`");
}

/* `metrics accuracy = ...`: what the first of two words is for. */
static const char *statement_meant(struct parser *p, struct loc loc) {
  static const char *const words[] = {"use", "layer", "function", "initializer", "optimizer", "model", "input", "var",
                                      "state", "return", "for", "scan", "if", "train", "metric", "predict", "data", "strategy"};
  const char *text = loc.source->text, *at = text + loc.begin, *line = at;
  while (line > text && line[-1] != '\n') line--;
  line += strspn(line, " \t");
  size_t n = strspn(line, NAME_LETTERS);
  if (!n || line >= at || line + n + strspn(line + n, " \t") != at) return NULL;
  const char *word = arena_strndup(p->arena, line, n), *meant = str_closest(word, words, sizeof words / sizeof *words);
  return meant && strcmp(meant, word) != 0 ? meant : NULL;
}

/* `h = relu nn.dense(x, 3)`: a name before what is a call, or a member of something. */
static bool help_applied(struct parser *p, struct loc loc) {
  enum { MOST = 60 };
  const char *text = loc.source->text, *at = text + loc.begin, *name = at, *end;
  while (name > text && strchr(" \t", name[-1])) name--;
  end = name;
  while (name > text && strchr(NAME_LETTERS "0123456789.", name[-1])) name--;
  const char *before = name;
  while (before > text && strchr(" \t", before[-1])) before--;
  bool value = before > text && strchr("=+-*/(,", before[-1]), called = strchr(".(", text[loc.end]) && text[loc.end];
  if (name == end || end == at || !value || !called) return false;
  int rest = (int)strcspn(at, "#;\n\r");
  while (rest && strchr(" \t", at[rest - 1])) rest--;
  diag_help(p->diags, LOC_NONE, "what a function is called with stands in brackets: `%.*s(%.*s)`", (int)(end - name), name,
            rest < MOST ? rest : 1, rest < MOST ? at : "x");
  return true;
}

static bool is_definition(yysymbol_kind_t word) {
  return word == YYSYMBOL_LAYER || word == YYSYMBOL_FUNCTION || word == YYSYMBOL_INITIALIZER || word == YYSYMBOL_OPTIMIZER ||
         word == YYSYMBOL_MODEL;
}

/* "unexpected X, expected A or B", and where an open bracket waits for its end. */
static int yyreport_syntax_error(const yypcontext_t *context, struct parser *p) {
  if (p->fatal) return 0;
  enum { MOST = 5 };
  yysymbol_kind_t found = yypcontext_token(context), expected[YYNTOKENS];
  struct loc loc = *yypcontext_location(context);
  int n = drop_operators(expected, yypcontext_expected_tokens(context, expected, YYNTOKENS));
  if (n > MOST) n = 0;

  struct str s = str_make(p->arena);
  if (found == YYSYMBOL_NAME || found == YYSYMBOL_INT || found == YYSYMBOL_FLOAT) {
    size_t len = loc.end - loc.begin;
    str_printf(&s, "unexpected `%.*s`", len < 40 ? (int)len : 40, loc.source->text + loc.begin);
  } else {
    const char *name = yysymbol_name(found);
    str_printf(&s, "unexpected %s", strncmp(name, "a ", 2) == 0 ? name + 2 : strncmp(name, "the ", 4) == 0 ? name + 4 : name);
  }
  /* The lexer has counted the token itself if it is a bracket. */
  bool closing = p->depth && p->bracket[p->depth] != '{' && p->open[p->depth].begin != loc.begin;
  if (closing) {
    char close = p->bracket[p->depth] == '(' ? ')' : ']';
    diag_error(p->diags, loc, "%s before `%c`", s.data, close);
    diag_note(p->diags, p->open[p->depth], "for this `%c`", p->bracket[p->depth]);
    p->inside = is_left_open(p, loc);
    help_in_bracket(p, p->bracket[p->depth], found, loc.source->text[loc.begin], loc);
  } else {
    for (int i = 0; i < n; i++)
      str_printf(&s, "%s %s", i == 0 ? ", expected" : i == n - 1 ? " or" : ",", yysymbol_name(expected[i]));
    diag_error(p->diags, loc, "%s", s.data);
    if (found == YYSYMBOL_YYEOF && p->depth) diag_note(p->diags, p->open[p->depth], "this `{` is not closed");
  }
  bool helped = !closing && help_with_line(p, found, loc);
  if (found == YYSYMBOL_WITH && !closing) p->inside = opens(loc);
  if (found == YYSYMBOL_NAME && !closing && !helped) {
    static const char *const words[] = {"use", "layer", "function", "initializer", "optimizer", "model", "input", "var",
                                        "state", "return", "for", "scan", "in", "if", "else", "train", "with", "over", "metric",
                                        "predict", "data", "strategy"};
    const char *word = ast_text(p, loc, (struct slice){loc.source->text + loc.begin, loc.end - loc.begin});
    const char *meant = statement_meant(p, loc);
    bool applied = !meant && help_applied(p, loc);
    if (!meant && !applied) meant = str_closest(word, words, sizeof words / sizeof *words);
    if (meant) diag_help(p->diags, LOC_NONE, "did you mean `%s`?", meant);
  }
  size_t behind = loc.end + strspn(loc.source->text + loc.end, " \t"), letters = strspn(loc.source->text + behind, NAME_LETTERS);
  if (!helped && is_definition(found) && p->depth && !closing && letters)
    diag_help(p->diags, LOC_NONE, "definitions stand beside each other: write it before the one that this is in");
  else if (!helped && is_taken_word(context, found, loc))
    diag_help(p->diags, LOC_NONE, "`%.*s` is a word of the language: write another name", (int)(loc.end - loc.begin),
              loc.source->text + loc.begin);
  if (found == YYSYMBOL_ASSIGN) diag_help(p->diags, LOC_NONE, "to compare with a negative number write `< -`");
  /* Go on at the end of the line, whatever is still open in it. */
  while (p->depth && p->bracket[p->depth] != '{') p->depth--;
  char first = loc.source->text[loc.begin];
  p->skips = p->depth && !p->inside && found != YYSYMBOL_NEWLINE && found != YYSYMBOL_YYEOF && first != '}';
  p->skipped = p->skips && first == '{';
  if (p->skipped) p->depth--;
  return 0;
}
