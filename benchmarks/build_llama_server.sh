#!/bin/sh
# Build llama-server from the llama.cpp source in the archive of the llama-cpp-python that Glimmer depends on,
# to measure Glimmer's engine beside it: benchmarks/build_llama_server.sh [FOLDER] [ARCHIVE.tar.gz]
set -eu

folder=${1:-benchmarks/out}
archive=${2:-}
python=${PYTHON:-python3}

mkdir -p "$folder"
if [ -z "$archive" ]; then
    "$python" -m pip download --quiet --no-deps --no-build-isolation --no-binary llama-cpp-python \
        --dest "$folder" 'llama-cpp-python==0.3.36'
    archive=$(ls "$folder"/llama_cpp_python-0.3.36.tar.gz)
fi
tar -xzf "$archive" -C "$folder"
source=$(ls -d "$folder"/llama_cpp_python-*/vendor/llama.cpp)
cmake -S "$source" -B "$folder/build" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON \
    -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
    -DLLAMA_BUILD_TOOLS=ON -DLLAMA_BUILD_SERVER=ON -DLLAMA_BUILD_APP=OFF -DLLAMA_USE_PREBUILT_UI=OFF
cmake --build "$folder/build" --target llama-server -j "$(getconf _NPROCESSORS_ONLN)"
echo "$folder/build/bin/llama-server"
