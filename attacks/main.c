/* px-attack - what a box must stop, and what it must let happen; run inside boxes by `px sandbox verify` and by the tests. */
#include "attack.h"

static const struct table *const tables[] = {&fs_table, &proc_table, &syscall_table, &ids_table, &ipc_table, &limits_table};

static int list(void)
{
    for (size_t t = 0; t < COUNT(tables); t++)
        for (size_t i = 0; i < tables[t]->count; i++) {
            const struct row *r = &tables[t]->rows[i];
            printf("%s\t%s\t%s\t%s\n", r->kind == ATTACK ? "attack" : "twin", r->name, r->flags & BARE ? "bare" : "-",
                   r->options ? r->options : "");
        }
    return fflush(stdout) == 0 ? 0 : FAILED;
}

static int run(const struct row *r)
{
    int result = r->run();
    if (result == DONE)
        printf("%s\n", r->kind == ATTACK ? "stopped" : "worked");
    return fflush(stdout) == 0 ? result : FAILED;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "list") == 0)
        return list();
    for (size_t t = 0; argc >= 2 && t < COUNT(tables); t++)
        for (size_t i = 0; i < tables[t]->count; i++)
            if (strcmp(tables[t]->rows[i].name, argv[1]) == 0)
                return run(&tables[t]->rows[i]);
    printf("no such row\n");
    return FAILED;
}
