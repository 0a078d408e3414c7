/*
 * tandem completion: writes a shell script that completes `tandem ...`, from the table of verbs and
 * from view/options.def. The scripts call `tandem completion jobs` and `keys` for words that
 * change.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/cli.h"
#include "view/jobs.h"

static const struct verb_option {
	const char *verb, *name, *argument, *values, *help;
} options[] = {
#define OPTION(verb, name, letter, argument, values, help) {#verb, name, argument, values, help},
#include "view/options.def"
#undef OPTION
};
#define OPTION_N (sizeof(options) / sizeof(options[0]))

/*
 * Calls each() for every option of a verb. Options are in options.def, or in the verb's line of
 * arguments, such as "[--json]".
 */
static void each_option(const struct td_verb *verb,
	void (*each)(void *arg, const struct verb_option *option), void *arg)
{
	for (size_t i = 0; i < OPTION_N; i++)
		if (!strcmp(options[i].verb, verb->name))
			each(arg, &options[i]);
	for (const char *at = verb->arguments; (at = strstr(at, "[--")); at++) {
		struct verb_option option = {verb->name, NULL, "", "", ""};
		char name[32];

		if (at[3] == ']')
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + 3, " ]"), at + 3);
		option.name = name;
		option.help = !strcmp(name, "json") ? "print JSON" : "";
		each(arg, &option);
	}
}

/* The kind of operand that a verb takes after its options. */
enum operand { NOTHING, JOB, COMMAND, SETTING, SHELL };

static enum operand operand_of(const struct td_verb *verb)
{
	if (strstr(verb->arguments, "COMMAND") || strstr(verb->arguments, "PROGRAM"))
		return COMMAND;
	if (strstr(verb->arguments, "KEY=VALUE"))
		return SETTING;
	if (strstr(verb->arguments, "SHELL"))
		return SHELL;
	return strstr(verb->arguments, "JOB") ? JOB : NOTHING;
}

/* Adds the possible values of an option, with blanks between; "" means any value. */
static void add_values(struct td_text *text, const struct verb_option *option)
{
	if (strcmp(option->values, "@sort")) {
		td_text_add(text, "%s", option->values);
		return;
	}
	for (unsigned i = 0; i < TD_JOBS_N; i++)
		td_text_add(text, "%s%s", i ? " " : "", td_jobs_info((enum td_jobs_column)i)->id);
}

static bool takes_file(const struct verb_option *option)
{
	return !strcmp(option->values, "@file");
}

/* -- bash -- */

static void bash_name(void *arg, const struct verb_option *option)
{
	td_text_add(arg, " --%s", option->name);
}

static void bash_values(void *arg, const struct verb_option *option)
{
	struct td_text *text = arg;

	if (!*option->argument)
		return;
	td_text_add(text, "\t\"%s --%s\") ", option->verb, option->name);
	if (takes_file(option)) {
		td_text_add(text, "COMPREPLY=($(compgen -f -- \"$cur\"))");
	} else {
		td_text_add(text, "_tandem_words \"");
		add_values(text, option);
		td_text_add(text, "\"");
	}
	td_text_add(text, "; return ;;\n");
}

static void bash_verb(struct td_text *text, const struct td_verb *verb)
{
	static const char *const operands[] = {
		[NOTHING] = "",
		[JOB] = "; lists=jobs",
		[SETTING] = "; lists='keys jobs'",
		[SHELL] = "; options+=' bash zsh fish'",
		[COMMAND] = "; program=1",
	};

	td_text_add(text, "\t%s) options=\"", verb->name);
	each_option(verb, bash_name, text);
	td_text_add(text, "\"%s ;;\n", operands[operand_of(verb)]);
}

static void write_bash(struct td_text *text)
{
	td_text_add(text,
		"# Completes tandem in bash: eval \"$(tandem completion bash)\"\n"
		"_tandem_words() {\n"
		"\tlocal IFS=$' \\n'\n"
		"\tCOMPREPLY=($(compgen -W \"$1\" -- \"$cur\"))\n"
		"}\n\n"
		"# Names of jobs are anybody's words: compgen -W would run $(...) in them.\n"
		"_tandem_list() {\n"
		"\tlocal word rest\n"
		"\twhile IFS=$'\\t' read -r word rest; do\n"
		"\t\t[[ $word != \"$cur\"* ]] || COMPREPLY+=(\"$(printf %%q \"$word\")\")\n"
		"\tdone < <(tandem completion \"$1\" 2>/dev/null)\n"
		"}\n\n"
		"_tandem() {\n"
		"\tlocal cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]}\n"
		"\tlocal prev=${COMP_WORDS[COMP_CWORD - 1]} options= lists= list program= i\n"
		"\tCOMPREPLY=()\n"
		"\tif ((COMP_CWORD == 1)); then\n"
		"\t\t_tandem_words \"");
	for (const struct td_verb *verb = td_verbs; verb->name; verb++)
		td_text_add(text, "%s ", verb->name);
	td_text_add(text, "--help --version\"\n\t\treturn\n\tfi\n"
			  "\tcase \"$verb $prev\" in\n");
	for (const struct td_verb *verb = td_verbs; verb->name; verb++)
		each_option(verb, bash_values, text);
	td_text_add(text, "\tesac\n\tcase $verb in\n");
	for (const struct td_verb *verb = td_verbs; verb->name; verb++)
		bash_verb(text, verb);
	td_text_add(text,
		"\tesac\n"
		"\t# Behind the first word that is no option stands a program with its arguments.\n"
		"\tif [[ $program ]]; then\n"
		"\t\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
		"\t\t\tcase ${COMP_WORDS[i]} in\n"
		"\t\t\t--) break ;;\n"
		"\t\t\t--help | --json) ;;\n"
		"\t\t\t--*) ((i++)) ;;\n"
		"\t\t\t*) break ;;\n"
		"\t\t\tesac\n"
		"\t\tdone\n"
		"\t\tif ((i < COMP_CWORD)); then\n"
		"\t\t\t[[ ${COMP_WORDS[i]} == -- ]] && ((i++))\n"
		"\t\t\tif ((i < COMP_CWORD)) && declare -F _command_offset >/dev/null; then\n"
		"\t\t\t\t_command_offset \"$i\"\n"
		"\t\t\telif ((i < COMP_CWORD)); then\n"
		"\t\t\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n"
		"\t\t\telse\n"
		"\t\t\t\tCOMPREPLY=($(compgen -c -- \"$cur\"))\n"
		"\t\t\tfi\n"
		"\t\t\treturn\n"
		"\t\tfi\n"
		"\t\tif [[ $cur != -* ]]; then\n"
		"\t\t\tCOMPREPLY=($(compgen -c -- \"$cur\"))\n"
		"\t\t\treturn\n"
		"\t\tfi\n"
		"\tfi\n"
		"\t[[ $lists && $cur != -* ]] || _tandem_words \"$options\"\n"
		"\tfor list in $lists; do\n"
		"\t\t[[ $cur == -* ]] || _tandem_list \"$list\"\n"
		"\tdone\n"
		"\t[[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2>/dev/null\n"
		"\treturn 0\n"
		"}\n"
		"complete -F _tandem tandem\n");
}

/* -- zsh -- */

/* Adds text between single quotes; characters with a meaning in zsh's _arguments are escaped. */
static void add_zsh(struct td_text *text, const char *words)
{
	for (; *words; words++) {
		if (*words == '\'')
			td_text_put(text, "'\\''", 4);
		else
			td_text_add(text, strchr("[]:\\", *words) ? "\\%c" : "%c", *words);
	}
}

static void zsh_option(void *arg, const struct verb_option *option)
{
	struct td_text *text = arg;

	td_text_add(text, " \\\n\t\t\t'--%s[", option->name);
	add_zsh(text, option->help);
	td_text_add(text, "]");
	if (*option->argument) {
		td_text_add(text, ":%s:", option->argument);
		if (takes_file(option)) {
			td_text_add(text, "_files");
		} else if (*option->values) {
			struct td_text values = {0};

			add_values(&values, option);
			td_text_add(text, "(");
			add_zsh(text, values.text ? values.text : "");
			td_text_add(text, ")");
			td_text_deinit(&values);
		}
	}
	td_text_add(text, "'");
}

static void write_zsh(struct td_text *text)
{
	static const char *const operands[] = {
		[NOTHING] = "",
		[JOB] = " \\\n\t\t\t'1:job:_tandem_jobs'",
		[SETTING] = " \\\n\t\t\t'*:setting:_tandem_keys'",
		[SHELL] = " \\\n\t\t\t'1:shell:(bash zsh fish)'",
		[COMMAND] = " \\\n\t\t\t'*::command:_normal'",
	};

	td_text_add(text,
		"#compdef tandem\n"
		"# Completes tandem in zsh: put it into a folder of $fpath as _tandem.\n"
		"_tandem_jobs() {\n"
		"\tlocal -a jobs\n"
		"\tjobs=(${(f)\"$(tandem completion jobs 2>/dev/null | tr '\\t' ':')\"})\n"
		"\t_describe job jobs\n"
		"}\n"
		"_tandem_keys() {\n"
		"\tlocal -a keys\n"
		"\tkeys=(${(f)\"$(tandem completion keys 2>/dev/null)\"})\n"
		"\tcompadd -S '' -a keys\n"
		"}\n"
		"_tandem() {\n"
		"\tlocal -a verbs\n"
		"\tverbs=(\n");
	for (const struct td_verb *verb = td_verbs; verb->name; verb++) {
		td_text_add(text, "\t\t'%s:", verb->name);
		add_zsh(text, verb->help);
		td_text_add(text, "'\n");
	}
	td_text_add(text, "\t)\n"
			  "\tif ((CURRENT == 2)); then\n"
			  "\t\t_describe verb verbs\n"
			  "\t\treturn\n"
			  "\tfi\n"
			  "\tlocal verb=$words[2]\n"
			  "\tshift words\n"
			  "\t((CURRENT--))\n"
			  "\tcase $verb in\n");
	for (const struct td_verb *verb = td_verbs; verb->name; verb++) {
		td_text_add(text, "\t%s)\n\t\t_arguments -S", verb->name);
		each_option(verb, zsh_option, text);
		td_text_add(text, "%s\n\t\t;;\n", operands[operand_of(verb)]);
	}
	td_text_add(text, "\tesac\n}\n"
			  "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n"
			  "\t_tandem \"$@\"\n"
			  "else\n"
			  "\tcompdef _tandem tandem\n"
			  "fi\n");
}

/* -- fish -- */

static void add_fish(struct td_text *text, const char *words)
{
	td_text_put(text, "'", 1);
	for (; *words; words++)
		td_text_add(text, *words == '\'' || *words == '\\' ? "\\%c" : "%c", *words);
	td_text_put(text, "'", 1);
}

static void fish_option(void *arg, const struct verb_option *option)
{
	struct td_text *text = arg;

	td_text_add(text, "complete -c tandem -n '__fish_seen_subcommand_from %s' -l %s",
		option->verb, option->name);
	if (*option->argument && takes_file(option)) {
		td_text_add(text, " -r -F");
	} else if (*option->argument) {
		td_text_add(text, " -x -a '");
		add_values(text, option);
		td_text_add(text, "'");
	}
	td_text_add(text, " -d ");
	add_fish(text, option->help);
	td_text_add(text, "\n");
}

static void write_fish(struct td_text *text)
{
	static const char *const operands[] = {
		[NOTHING] = "",
		[JOB] = "(tandem completion jobs 2>/dev/null)",
		[SETTING] = "(tandem completion keys 2>/dev/null)",
		[SHELL] = "bash zsh fish",
		[COMMAND] = "(__fish_complete_subcommand --fcs-skip=2)",
	};

	td_text_add(text, "# Completes tandem in fish: tandem completion fish | source\n"
			  "complete -c tandem -f\n");
	for (const struct td_verb *verb = td_verbs; verb->name; verb++) {
		td_text_add(
			text, "complete -c tandem -n __fish_use_subcommand -a %s -d ", verb->name);
		add_fish(text, verb->help);
		td_text_add(text, "\n");
		each_option(verb, fish_option, text);
		if (*operands[operand_of(verb)])
			td_text_add(text,
				"complete -c tandem -n '__fish_seen_subcommand_from %s' -a '%s'\n",
				verb->name, operands[operand_of(verb)]);
	}
}

/* -- words that change -- */

/* Prints "id<TAB>name" once for each job. Rows of the same job follow one another. */
static void job_row(const struct td_msg *msg, void *arg)
{
	char *last = arg;

	if (msg->type != TD_MSG_TYPE_job || !strcmp(last, msg->job.job))
		return;
	snprintf(last, TD_STR_MAX + 1, "%s", msg->job.job);
	printf("%s\t%s\n", msg->job.job, msg->job.name);
}

static void key_row(const struct td_msg *msg, void *arg)
{
	(void)arg;
	if (msg->type == TD_MSG_TYPE_option)
		printf("%s=\n", msg->option.key);
}

static int print_jobs(void)
{
	char last[TD_STR_MAX + 1] = "";

	return td_cli_ask(&(struct td_msg){.type = TD_MSG_TYPE_list_jobs}, job_row, last);
}

static int print_keys(void)
{
	return td_cli_ask(&(struct td_msg){.type = TD_MSG_TYPE_get}, key_row, NULL);
}

static int print(void (*write)(struct td_text *text))
{
	struct td_text text = {0};

	write(&text);
	if (text.failed) {
		td_text_deinit(&text);
		return td_cli_fail("completion: there is no memory");
	}
	fwrite(text.text, 1, text.length, stdout);
	td_text_deinit(&text);
	return 0;
}

int td_verb_completion(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (argc > 2)
		return td_cli_fail("\"%.64s\" is not expected behind the shell: see tandem "
				   "completion --help",
			argv[2]);
	if (!strcmp(what, "bash"))
		return print(write_bash);
	if (!strcmp(what, "zsh"))
		return print(write_zsh);
	if (!strcmp(what, "fish"))
		return print(write_fish);
	if (!strcmp(what, "jobs"))
		return print_jobs();
	if (!strcmp(what, "keys"))
		return print_keys();
	return td_cli_fail("\"%.64s\" is not a shell: expected bash, zsh or fish", what);
}
