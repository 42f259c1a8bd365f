/* tests/harness/bpf.h - an interpreter of seccomp programs: classic BPF, as much of it as the kernel's own walk over the
 * numbers understands.
 *
 * Why:     a filter is tried with every number and millions of arguments without loading it.
 * Mustn't: be linked into the product, or share code with what makes the programs. */
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct px_bpf_outcome {
    uint32_t action;
    bool looked_at_arguments;
    bool broken;                /* an unknown instruction, or a jump or load out of bounds */
};

static inline bool px_bpf_jumps(const struct sock_filter *insn, uint32_t accumulator)
{
    switch (BPF_OP(insn->code)) {
    case BPF_JEQ:
        return accumulator == insn->k;
    case BPF_JGT:
        return accumulator > insn->k;
    case BPF_JGE:
        return accumulator >= insn->k;
    default:
        return accumulator & insn->k;
    }
}

static inline struct px_bpf_outcome px_bpf_run(const struct sock_filter *code, uint32_t len, const struct seccomp_data *data)
{
    struct px_bpf_outcome out = {.broken = false};
    uint32_t accumulator = 0;

    for (uint32_t at = 0; at < len; at++) {
        const struct sock_filter *insn = &code[at];

        switch (insn->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            if (insn->k % 4 != 0 || insn->k > sizeof *data - 4)
                return (struct px_bpf_outcome){.broken = true};
            memcpy(&accumulator, (const char *)data + insn->k, sizeof accumulator);
            out.looked_at_arguments |= insn->k >= offsetof(struct seccomp_data, instruction_pointer);
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            accumulator &= insn->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
        case BPF_JMP | BPF_JGT | BPF_K:
        case BPF_JMP | BPF_JGE | BPF_K:
        case BPF_JMP | BPF_JSET | BPF_K:
            at += px_bpf_jumps(insn, accumulator) ? insn->jt : insn->jf;
            break;
        case BPF_JMP | BPF_JA:
            if (insn->k >= len - at)
                return (struct px_bpf_outcome){.broken = true};
            at += insn->k;
            break;
        case BPF_RET | BPF_K:
            out.action = insn->k;
            return out;
        default:
            return (struct px_bpf_outcome){.broken = true};
        }
    }
    return (struct px_bpf_outcome){.broken = true};
}
