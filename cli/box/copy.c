/* px box copy: files and directories into a box and out of it. */
#include "cli/box/box.h"

#include <stdio.h>
#include <string.h>

#include <px/living.h>

/* NAME:PATH; a path of the host that has a colon in it is written ./a:b or /a:b. */
static bool split(const char *word, char name[64], const char **ret_path)
{
    size_t n = strcspn(word, ":/.");
    if (n == 0 || n >= 64 || word[n] != ':' || word[n + 1] == '\0')
        return false;
    (void)snprintf(name, 64, "%.*s", (int)n, word);
    *ret_path = word + n + 1;
    return true;
}

int box_copy(struct args *a)
{
    const struct box_words *w = a->request;
    const struct cli *cli = a->cli;
    const char *path[2] = {NULL, NULL};
    struct px_err e = {0};
    struct px_living *living = NULL;
    char name[64];
    uint64_t skipped = 0;
    bool in = split(a->names[1], name, &path[1]), out = split(a->names[0], name, &path[0]);
    if (in && out)
        return usage_error(cli, USAGE_STATUS, "Copy it out of the one, then into the other.",
                           "px box copy does not copy from box to box");
    if (!out && !in)
        return usage_error(cli, USAGE_STATUS, "Write NAME:PATH for a place in a box.", "px box copy needs two places, one of them in a box");
    int r = px_living_open(NULL, name, &living, &e);
    int signals = stop_signals();       /* what is half there is taken back first */
    if (r >= 0)
        px_living_cancel_on(living, signals);
    if (r >= 0)
        r = out ? px_living_copy_out(living, path[0], a->names[1], w->max_size, &skipped, &e)
                : px_living_copy_in(living, a->names[0], path[1], &e);
    px_living_close(living);
    if (r < 0)
        return say_error(cli, &e, 1);
    if (skipped && cli->verbose >= 0 && !cli->json)
        say("px: left out %llu links, devices and the like", (unsigned long long)skipped);
    if (cli->json)
        print("{\"name\":\"%s\",\"skipped\":%llu}\n", name, (unsigned long long)skipped);
    return flush();
}
