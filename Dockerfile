# Both images of Workron. The build context is the root of the repository.
#
#   make image              the target `worker`: agent and runner
#   make controller-image   the target `controller`: the controller and every command of `workron`
#
# The libraries have the versions and hashes of uv.lock. Nothing is compiled: a library without a
# wheel for this base fails the build at once instead of asking for a compiler.
ARG BASE=python:3.13-slim-trixie

FROM ${BASE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore \
    PIP_ONLY_BINARY=:all: PIP_QUIET=1
WORKDIR /build
COPY worker_image/build-requirements.txt worker_image/requirements.txt ./
RUN python3 -m venv tools \
 && tools/bin/pip install --require-hashes -r build-requirements.txt \
 && python3 -m venv --without-pip /opt/workron \
 && tools/bin/pip --python /opt/workron/bin/python install --require-hashes -r requirements.txt
COPY pyproject.toml README.md LICENSE ./
COPY workron workron
COPY worker_image/workron_worker worker_image/workron_worker
COPY worker_image/workron_runner worker_image/workron_runner

FROM build AS build-worker
RUN tools/bin/hatchling build -t wheel -d wheel \
 && tools/bin/pip --python /opt/workron/bin/python install --no-index --no-deps wheel/*.whl

FROM build AS build-controller
# These contain the worker's libraries, so this adds the controller's own.
COPY controller/requirements.txt controller-requirements.txt
RUN tools/bin/pip --python /opt/workron/bin/python \
      install --require-hashes -r controller-requirements.txt
COPY controller/workron_controller controller/workron_controller
RUN tools/bin/hatchling build -t wheel -d wheel \
 && tools/bin/pip --python /opt/workron/bin/python install --no-index --no-deps wheel/*.whl

FROM ${BASE} AS worker
LABEL org.opencontainers.image.title="workron-worker" \
      org.opencontainers.image.description="Workron worker: claims jobs and runs their commands" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build-worker /opt/workron /opt/workron
# Only these two names are visible to jobs: `python3` and `pip` stay those of the base, and jobs
# import what an image built on this one installs.
RUN runner=$(/opt/workron/bin/python -c 'import workron_runner; print(*workron_runner.__path__)') \
 && packages=$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
 && mkdir -p "$packages" \
 && ln -s "$runner" "$packages/workron_runner" \
 && ln -s /opt/workron/bin/workron /usr/local/bin/workron
USER 65532:65532
ENTRYPOINT ["workron"]
CMD ["worker"]

FROM ${BASE} AS controller
LABEL org.opencontainers.image.title="workron-controller" \
      org.opencontainers.image.description="Workron controller: runs Jobs and Workflows of a cluster" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build-controller /opt/workron /opt/workron
# `python3` stays that of the base: the chart's own programs run on it.
RUN ln -s /opt/workron/bin/workron /usr/local/bin/workron
USER 65532:65532
ENTRYPOINT ["workron"]
CMD ["controller"]
