says "$PX" sandbox
says "$PX" sandbox nonsense
says "$PX" sandbox verify -- true
says "$PX" sandbox verify -t
says "$PX" sandbox verify --jobs many
says "$PX" sandbox verify --jobs 0
says "$PX" sandbox verify --only
says "$PX" sandbox verify --only no_such_check
says "$PX" sandbox verify --nonsense
says "$PX" sandbox verify --without nonsense
