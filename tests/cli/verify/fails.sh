# A mechanism that is missing is seen, by words and by the exit status; what it does not hold still passes.
try "$PX" sandbox verify -q --only etc_readonly,exit_code --without read-only
try "$PX" sandbox verify -q --only D1_unshare,A2_chroot --without seccomp
