# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034
# A real S3 server for a test (tests/lib/s3server.py). Source after tap.sh:
#     s3_start [plain] || skip_all "$s3_why"   # sets $s3_url, and the environment for our programs
#     s3_bucket NAME

s3_why=
s3_url=

s3_is_up()
{
	kill -0 "$s3_pid" 2>/dev/null || return 0
	grep -q '^ready ' "$s3_dir/out"
}

s3_start()
{
	s3_dir=$(mktemp -d "$scratch/s3.XXXXXX")
	s3_program=${SB_TOP_SRCDIR:-.}/tests/lib/s3server.py
	/usr/bin/python3 "$s3_program" "$s3_dir" AKIDTEST secret/+= "$@" >"$s3_dir/out" \
		2>"$s3_dir/err" </dev/null &
	s3_pid=$!
	at_exit "kill $s3_pid 2>/dev/null; wait $s3_pid 2>/dev/null"
	wait_for 90 s3_is_up
	s3_url=$(sed -n 's/^ready //p' "$s3_dir/out")
	if [ -z "$s3_url" ]; then
		s3_why="no S3 server: $(tail -n 1 "$s3_dir/err")"
		return 1
	fi
	AWS_ACCESS_KEY_ID=AKIDTEST AWS_SECRET_ACCESS_KEY=secret/+= AWS_REGION=us-east-1
	AWS_DEFAULT_REGION=us-east-1 AWS_ENDPOINT_URL_S3=$s3_url AWS_EC2_METADATA_DISABLED=true
	export AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_REGION AWS_DEFAULT_REGION
	export AWS_ENDPOINT_URL_S3 AWS_EC2_METADATA_DISABLED
}

# boto CODE: Python with `s3`, the vendor's client of that server.
boto()
{
	/usr/bin/python3 - "$s3_url" <<PY
import sys, boto3
from botocore.config import Config
s3 = boto3.client("s3", endpoint_url=sys.argv[1],
                  config=Config(s3={"addressing_style": "path"}))
$1
PY
}

s3_bucket()
{
	boto "s3.create_bucket(Bucket='$1')"
}
