/* libpx_start - times boxes started through libpx, from px_box_start to the final result; requests as in bench.h.
 *
 *     libpx_start [FIELD=VALUE]... -- COMMAND ARG...
 *
 * The policy is made once, as a long-lived caller would; each run is one box of the default preset with
 * the fields given.
 * Alone: echo 'run 100' | libpx_start net=host -- /usr/bin/busybox true */
#include "bench.h"

#include <string.h>

#include <px/px.h>

struct job {
    struct px_policy *policy;
    const char *const *argv;
    struct px_err err;          /* of the last run that failed */
};

static int run_once(void *arg)
{
    struct job *job = arg;
    struct px_box *box = NULL;
    int status = 125;

    if (px_box_start(job->policy, job->argv, NULL, &box, &job->err) == 0 && px_box_wait(box, &job->err) == 0)
        status = px_box_result(box)->exit_code;
    px_box_free(box);
    return status;
}

/* "net=host": the text is cut at the sign. */
static int set_field(struct px_policy *policy, char *field, struct px_err *e)
{
    char *value = strchr(field, '=');

    if (!value)
        return px_policy_set(policy, field, NULL, e);
    *value++ = '\0';
    return px_policy_set(policy, field, value, e);
}

static int policy_build(char **argv, struct job *job, const char *const **ret_command)
{
    char **word = argv;

    if (px_policy_new("default", &job->policy, &job->err) < 0)
        return -1;
    for (; *word && strcmp(*word, "--") != 0; word++)
        if (set_field(job->policy, *word, &job->err) < 0)
            return -1;
    *ret_command = (const char *const *)(*word ? word + 1 : word);
    return 0;
}

int main(int argc, char **argv)
{
    struct job job = {0};
    int status = 2;

    if (argc < 2 || policy_build(argv + 1, &job, &job.argv) < 0 || !job.argv[0])
        fprintf(stderr, "usage: libpx_start [FIELD=VALUE]... -- COMMAND ARG...\n%s\n", job.err.what);
    else
        status = serve(run_once, &job);
    if (job.err.code != 0)
        fprintf(stderr, "libpx_start: %s\n", job.err.what);
    px_policy_free(job.policy);
    return status;
}
