/* One command in a box, and what became of it.
 *
 *     cc hello.c -lpx -o hello && ./hello */
#include <stdio.h>

#include <px/px.h>

static int complain(const struct px_err *e)
{
    fprintf(stderr, "PX%03d  %s\nwhy: %s\nfix: %s\n", e->code, e->what, e->why, e->fix);
    return 1;
}

int main(void)
{
    const char *const argv[] = {"sh", "-c", "echo hello from $(whoami)", NULL};
    struct px_err e = {0};
    struct px_policy *policy = NULL;
    struct px_box *box = NULL;
    int status = 1;

    /* Without a px_io the box has no input, and its output is kept for the result. */
    if (px_policy_new("default", &policy, &e) < 0 || px_policy_set(policy, "timeout", "30s", &e) < 0 ||
        px_box_start(policy, argv, NULL, &box, &e) < 0 || px_box_wait(box, &e) < 0) {
        status = complain(&e);
    } else {
        const struct px_result *r = px_box_result(box);
        printf("%.*s%s, exit %d, tier %s\n", (int)r->out.len, r->out.data, px_status_name(r->status),
               r->exit_code, r->tier);
        status = r->status == PX_STATUS_OK ? 0 : 1;
    }
    px_box_free(box);           /* both accept NULL */
    px_policy_free(policy);
    return status;
}
