# A policy that cannot be had is the error of that policy, and not a list of failures.
mkdir empty
says "$PX" sandbox verify --rootfs nowhere
says "$PX" sandbox verify --device /dev/kvm
