"""What programs do around their tensors: streams, memory, random numbers, exchange, processes."""

from __future__ import annotations

import io
import socket

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset


def test_events_and_streams():
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        first.record()
        x = torch.full((1000,), 3.0, device="cuda")
        last.record()
    torch.cuda.current_stream().wait_stream(stream)
    x.record_stream(torch.cuda.current_stream())
    last.synchronize()
    assert first.elapsed_time(last) >= 0
    assert x.sum().item() == 3000
    assert stream.query()


def test_memory_is_counted_in_bytes_of_tensors():
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    x = torch.empty(1000, device="cuda")
    assert torch.cuda.memory_allocated() - before == 4000
    del x
    assert torch.cuda.memory_allocated() == before
    assert torch.cuda.max_memory_allocated() - before == 4000
    free, total = torch.cuda.mem_get_info()
    assert total - free >= before
    with pytest.raises(RuntimeError, match="out of memory"):
        torch.empty(total + 1, dtype=torch.uint8, device="cuda")


def test_pinned_memory():
    pinned = torch.arange(100.0).pin_memory()
    assert pinned.is_pinned()
    back = torch.empty(100, pin_memory=True)
    back.copy_(pinned.to("cuda", non_blocking=True), non_blocking=True)
    torch.cuda.synchronize()
    assert torch.equal(back, pinned)


def test_exchange_without_a_copy():
    x = torch.arange(10.0, device="cuda")
    y = torch.from_dlpack(x)
    y += 1

    class Array:
        __cuda_array_interface__ = x.__cuda_array_interface__

    z = torch.as_tensor(Array(), device="cuda")
    z *= 2
    assert y.device == z.device == x.device
    assert x.tolist() == [2.0 * (n + 1) for n in range(10)]


def test_seeds_and_states_of_random_numbers():
    torch.manual_seed(1)
    first, state = torch.randn(5, device="cuda"), torch.cuda.get_rng_state()
    second = torch.randn(5, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(second, torch.randn(5, device="cuda"))
    torch.cuda.manual_seed(1)
    assert torch.equal(first, torch.randn(5, device="cuda"))
    assert not torch.equal(first, second)
    generator = torch.Generator("cuda").manual_seed(1)
    assert torch.equal(first, torch.randn(5, device="cuda", generator=generator))
    host_state = torch.get_rng_state()
    torch.nn.functional.dropout(first)
    assert torch.equal(host_state, torch.get_rng_state())
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator"):
        torch.randn(5, device="cuda", generator=torch.Generator())


def test_uniform_and_normal_numbers_are_a_gpus():
    """What NVIDIA GPUs print for seed 0; numbers of a tensor that fills no grid do not depend on
    the device."""
    torch.manual_seed(0)
    uniform = torch.rand(2, 3, device="cuda")
    torch.manual_seed(0)
    normal = torch.randn(2, 3, device="cuda")
    expected = [[0.3990, 0.5167, 0.0249], [0.9401, 0.9459, 0.7967]]
    torch.testing.assert_close(uniform.cpu(), torch.tensor(expected), rtol=0, atol=5.1e-5)
    expected = [[-0.9247, -0.4253, -2.6438], [0.1452, -0.1209, -0.5797]]
    torch.testing.assert_close(normal.cpu(), torch.tensor(expected), rtol=0, atol=5.1e-5)


def test_philox_gives_its_known_answers():
    """Salmon and others, Random123, kat_vectors: philox4x32 with 10 rounds."""
    from warploom.clients.torch.philox import philox

    zeros, ones = np.zeros(1, np.uint64), np.full(1, 0xFFFFFFFF, np.uint64)
    words = [int(word[0]) for word in philox([zeros] * 4, 0)]
    assert words == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    words = [int(word[0]) for word in philox([ones] * 4, 0xFFFFFFFFFFFFFFFF)]
    assert words == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


def test_random_numbers_have_their_distributions():
    """With 100,000 draws a mean is within 5 / sqrt(100,000) = 0.016 deviations."""
    torch.manual_seed(0)
    uniform, normal = torch.rand(100_000, device="cuda"), torch.randn(100_000, device="cuda")
    assert abs(uniform.mean().item() - 0.5) < 0.016 / 12**0.5
    assert abs(normal.mean().item()) < 0.016
    assert abs(normal.std().item() - 1) < 0.016
    assert torch.randperm(1000, device="cuda").sort()[0].tolist() == list(range(1000))
    kept = torch.nn.functional.dropout(torch.ones(100_000, device="cuda"), 0.25)
    assert kept.unique().tolist() == [0, pytest.approx(1 / 0.75)]
    assert abs((kept != 0).float().mean().item() - 0.75) < 0.016


def test_devices_are_not_mixed():
    x = torch.ones(3, device="cuda")
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        x + torch.ones(3)
    with pytest.raises(RuntimeError, match=r"indices should be either on cpu .* \(cpu\)"):
        torch.ones(3)[torch.tensor([1, 2], device="cuda")]
    assert (x * torch.tensor(2.0)).tolist() == [2, 2, 2]
    assert torch.arange(5, device="cuda")[torch.tensor([1, 2])].tolist() == [1, 2]


def test_results_are_where_and_as_they_should_be():
    with torch.device("cuda"):
        x = torch.arange(12.0).reshape(3, 4)
    assert x.device.type == "cuda"
    transposed = x.t() + 0
    assert transposed.stride() == (1, 4)  # an elementwise result has the strides of its operand
    out = torch.empty(0, device="cuda")
    assert torch.add(x, x, out=out) is out
    assert out.tolist() == (2 * x).tolist()
    view = x[:, 1]
    view.zero_()
    assert x[:, 1].tolist() == [0, 0, 0]
    assert (x % 5).tolist() == [[0, 0, 2, 3], [4, 0, 1, 2], [3, 0, 0, 1]]
    z = torch.tensor([1 + 2j], device="cuda").conj()
    assert (z * 1).tolist() == [1 - 2j]


def test_sparse_tensors():
    sparse = torch.tensor([[0.0, 2], [3, 0]], device="cuda").to_sparse()
    ones = torch.ones(2, 2, device="cuda")
    assert (sparse @ ones).tolist() == [[2, 2], [3, 3]]
    assert (sparse.to_sparse_csr() @ ones).tolist() == [[2, 2], [3, 3]]
    assert (sparse + sparse).to_dense().tolist() == [[0, 4], [6, 0]]


def test_attention_by_every_backend():
    from torch.nn.attention import SDPBackend, sdpa_kernel

    torch.manual_seed(0)
    shape = (2, 3, 16, 16)
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    q.requires_grad_()
    results = []
    names = ("MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION")
    for backend in (getattr(SDPBackend, name) for name in names):
        with sdpa_kernel([backend]):
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        [gradient] = torch.autograd.grad(y.float().square().sum(), q)
        results.append((y.detach(), gradient))
    for one in results[1:]:
        torch.testing.assert_close(one, results[0], rtol=3e-2, atol=3e-2)


def test_graphs_replay_on_new_data():
    graph, x = torch.cuda.CUDAGraph(), torch.ones(3, device="cuda")
    total = torch.zeros(3, device="cuda")
    with torch.cuda.graph(graph):
        y = x * 2
        total.add_(y)
    assert total.tolist() == [0, 0, 0]  # captured, not done
    for value in (4, 5):
        x.fill_(value)
        graph.replay()
    assert y.tolist() == [10, 10, 10]
    assert total.tolist() == [18, 18, 18]
    with (
        pytest.raises(RuntimeError, match="not permitted when stream is capturing"),
        torch.cuda.graph(torch.cuda.CUDAGraph()),
    ):
        x.sum().item()


def test_graphs_capture_lists_sizes_and_random_numbers():
    graph, x = torch.cuda.CUDAGraph(), torch.ones(6, 3, device="cuda")
    parts = [torch.zeros(4, device="cuda") for _ in range(3)]
    with torch.cuda.graph(graph):
        rows = torch.arange(len(x), device="cuda")  # writes a tensor that it gives its size
        torch._foreach_add_(parts, 1.0)
        drawn = torch.rand(1000, device="cuda")
        kept = torch.nn.functional.dropout(x, 0.5)
    assert parts[0].tolist() == [0] * 4
    graph.replay()
    first = drawn.clone()
    graph.replay()
    assert rows.tolist() == [0, 1, 2, 3, 4, 5]
    assert [part.tolist() for part in parts] == [[2] * 4] * 3
    assert 0.4 < drawn.mean().item() < 0.6
    assert not torch.equal(drawn, first)
    assert {*kept.flatten().tolist()} == {0, 2}


def test_a_stream_that_sleeps_goes_on():
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(1_000_000)
        x = torch.ones(3, device="cuda") * 2
    stream.synchronize()
    assert x.tolist() == [2, 2, 2]


def test_a_kernel_from_source():
    source = """extern "C" __global__ void add(float *x, int y, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) x[i] += y;
    }"""
    kernel, x = torch.cuda._compile_kernel(source, "add"), torch.zeros(100, device="cuda")
    kernel((1, 1, 1), (128, 1, 1), (x, 2, 100))
    assert x.sum().item() == 200


def test_a_loader_with_workers():
    data = TensorDataset(torch.arange(64.0).reshape(32, 2))
    loader = DataLoader(data, batch_size=8, num_workers=2, pin_memory=True)
    total = sum(batch.to("cuda", non_blocking=True).sum().item() for (batch,) in loader)
    assert total == 64 * 63 / 2


def test_saved_models_load_on_either_device():
    model, file = torch.nn.Linear(3, 3).cuda(), io.BytesIO()
    torch.save(model.state_dict(), file)
    for location, device in ((None, "cuda"), ("cpu", "cpu"), ("cuda", "cuda")):
        file.seek(0)
        loaded = torch.load(file, map_location=location)["weight"]
        assert loaded.device.type == device
        assert torch.equal(loaded.cpu(), model.weight.cpu())


def test_a_process_group_of_gloo():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    torch.distributed.init_process_group("gloo", init_method=address, rank=0, world_size=1)
    x = torch.ones(4, device="cuda")
    torch.distributed.all_reduce(x)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4).cuda())
    model(x).sum().backward()
    torch.distributed.destroy_process_group()
    assert model.module.bias.grad.tolist() == [1, 1, 1, 1]
    assert not torch.distributed.is_nccl_available()


def test_histograms_of_integers_are_counted():
    """The bins [0, 2), [2, 4), [4, 6), [6, 8]."""
    values = torch.tensor([0, 1, 2, 2, 3, 7, 8, 9, -1], device="cuda", dtype=torch.int32)
    for given in (values, values.to(torch.int8), values.float(), values.double()):
        counts = torch.histc(given, bins=4, min=0, max=8)
        assert counts.dtype is given.dtype
        assert counts.tolist() == [2, 3, 0, 2]
    assert torch.histc(values.clamp(min=0), bins=2).tolist() == [6, 3]


def test_the_profiler_lists_operators():
    activities = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[activities.CPU, activities.CUDA]) as profile:
        torch.ones(3, device="cuda").add(1)
    assert "aten::add" in {event.key for event in profile.key_averages()}
