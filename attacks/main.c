/* px-attack - what a box must stop, and what it must let happen; run inside boxes by `px sandbox verify` and by the tests. */
#include "attack.h"

static const struct {
    const char *kind, *name;
    int (*run)(void);
    const char *how, *tiers, *options, *held_by, *broken_by, *bare;
} rows[] = {
#define PX_ATTACK(name, function, how, tiers, options, held_by, broken_by, bare) \
    {"attack", #name, function, #how, #tiers, options, held_by, broken_by, #bare},
#define PX_TWIN(name, function, how, tiers, options, broken_by) \
    {"twin", #name, function, #how, #tiers, options, "", broken_by, "0"},
#include "attacks.def"
#undef PX_ATTACK
#undef PX_TWIN
};

static int list(void)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        printf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", rows[i].kind, rows[i].name, rows[i].how, rows[i].tiers,
               strcmp(rows[i].bare, "BARE") == 0 ? "bare" : "-", rows[i].options, rows[i].held_by, rows[i].broken_by);
    return fflush(stdout) == 0 ? 0 : FAILED;
}

static int run(size_t row)
{
    int result = rows[row].run();
    if (result == DONE)
        printf("%s\n", strcmp(rows[row].kind, "attack") == 0 ? "stopped" : "worked");
    return fflush(stdout) == 0 ? result : FAILED;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "list") == 0)
        return list();
    for (size_t i = 0; argc >= 2 && i < COUNT(rows); i++)
        if (strcmp(rows[i].name, argv[1]) == 0)
            return run(i);
    printf("no such row\n");
    return FAILED;
}
