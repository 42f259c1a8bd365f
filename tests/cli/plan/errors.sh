# What cannot be planned is refused alike.
says "$PX" exec --plan -v /no/such:/x -- true
says "$PX" exec --plan --device /dev/kvm -- true
