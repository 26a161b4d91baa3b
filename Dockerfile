# Training and playing on CPUs.
#
#   docker build -t lifeline .
#   docker run --rm -it --shm-size=2g -v "$PWD/runs:/home/lifeline/runs" lifeline train configs/base3.yaml
#   docker run --rm -it -v "$PWD/runs:/home/lifeline/runs" lifeline play --model runs/NAME/bot.onnx
#
# Ray's workers hand each other games through /dev/shm: hence --shm-size. The folder runs/ must be there before and
# writable by user 1000, whom the container runs as; on Linux that is the first user of most machines.
ARG PYTHON=3.12
FROM python:${PYTHON}-slim

RUN useradd --create-home --uid 1000 lifeline
RUN python -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH

# Requirements first: they change less often than the code, and Docker keeps them. The plain wheel of torch for Linux
# brings some gigabytes of CUDA. One from PyTorch's index of CPU builds does not, and satisfies the same pin: name that
# index, which PyTorch's installation page gives, by --build-arg TORCH_INDEX=...
ARG TORCH_INDEX=
COPY constraints.txt /src/
RUN pip install --no-cache-dir -c /src/constraints.txt --no-deps ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch

COPY pyproject.toml README.md LICENSE /src/
COPY lifeline /src/lifeline
COPY training /src/training
RUN pip install --no-cache-dir -c /src/constraints.txt '/src[train]'

USER lifeline
WORKDIR /home/lifeline
COPY configs configs
ENTRYPOINT ["lifeline"]
CMD ["--help"]
