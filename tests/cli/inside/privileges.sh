# Privileges all gone, filter on, nothing to gain.
"$PX" exec -- grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' /proc/self/status
