# tests/vm/guest/30-doctor.sh - what px doctor says of a host with cgroup v2 and an older Landlock, to each kind of caller.
# shellcheck source=../check.sh
. /usr/lib/px-vm/check.sh

run "$PX" doctor -v
check_status doctor-status 0
check_line doctor-tier out '^tier: full$'
check_line doctor-landlock out '^privileges landlock +(enforced|degraded) +landlock +ABI [0-9]'
check_line doctor-cgroups out '^limits +cgroups +enforced +limits +v2$'
case $PX_VM_USER in
plain)              # has no group of its own, and no subordinate ids
    check_line doctor-memory out '^limits +memory +absent +limits '
    check_line doctor-delegation out 'systemd-run --user --scope -p Delegate=yes'
    check_line doctor-ids out '^namespaces own ids +degraded '
    ;;
*)
    check_line doctor-memory out '^limits +memory +enforced +limits +cgroup v2$'
    check_line doctor-pids out '^limits +pids +enforced +limits +cgroup v2$'
    check_line doctor-cpu out '^limits +cpu +(enforced|degraded) +limits +cgroup v2'
    check_line doctor-ids out '^namespaces own ids +enforced +nice to have +65536 ids$'
    ;;
esac
run "$PX" doctor -q
check_out doctor-quiet 'tier: full'
