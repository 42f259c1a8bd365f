# tests/vm/guest/20-apparmor.sh - a profile of AppArmor on top of everything else. init has loaded px-test-confined.
# shellcheck source=../check.sh
. /usr/lib/px-vm/check.sh

if [ ! -e /run/px-vm.apparmor ]; then
    skip apparmor 'the host has no apparmor_parser, so there is no profile to load'
    exit 0
fi
run "$PX" exec --apparmor px-test-confined -c 'cat /proc/self/attr/apparmor/current'
check_out apparmor-applied 'px-test-confined (enforce)'
run "$PX" exec --apparmor px-test-confined -c 'echo x >/tmp/allowed && cat /tmp/allowed; echo x >/tmp/forbidden'
check_status apparmor-refuses 2
run "$PX" exec -c 'echo x >/tmp/forbidden && cat /tmp/forbidden'
check_out apparmor-only-if-asked x
run "$PX" exec --apparmor px-no-such-profile -- true
check_status apparmor-unknown-profile 125
run sh -c '"$0" exec --apparmor px-no-such-profile -- true 2>&1 | head -n 1 | cut -c 1-5' "$PX"
check_out apparmor-unknown-profile-code PX039
