/* tests/stress.h - what the two halves of the stress program share: stress.c outside the box, stress_attack.c inside it. */
#pragma once

/* Where the program is seen in a box: it brings its own attacks. */
#define STRESS_INSIDE "/stress"

/* Runs the attack of that name, which does not come back unless it fails; 2 if there is none. */
int stress_attack(const char *name, char **argv);
