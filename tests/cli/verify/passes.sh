"$PX" sandbox verify --only etc_readonly,exit_code,D2_clone3,D1_unshare
