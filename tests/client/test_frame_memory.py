"""Frames that libzmq sends without a copy: their memory is reused, but only after they have left."""

import asyncio
import gc

import zmq
import zmq.asyncio

from hltnode.client._native import allocate_frames
from hltnode.client.sockets import AsyncSocket, FeederSockets
from hltnode.protocol.buffers import Buffer
from hltnode.protocol.transport.feeder_messages import Goodbye

MIB = 1 << 20


def connected_to(context: zmq.asyncio.Context, data: AsyncSocket, control: AsyncSocket) -> FeederSockets:
    """The sockets of a feeder with these peers."""
    data_port, control_port = (socket.bind_to_random_port("tcp://127.0.0.1") for socket in (data, control))
    return FeederSockets(context, f"tcp://127.0.0.1:{data_port}", f"tcp://127.0.0.1:{control_port}")


def test_memory_is_used_again_when_nothing_refers_to_it() -> None:
    first = allocate_frames(3 * MIB)
    view = first[:10]
    place = first.ctypes.data
    del first
    gc.collect()
    other = allocate_frames(3 * MIB)
    assert other.ctypes.data != place
    del view
    gc.collect()
    again = allocate_frames(3 * MIB)
    assert again.ctypes.data == place


def test_a_small_array_does_not_take_the_memory_of_a_large_one() -> None:
    large = allocate_frames(64 * MIB)
    place = large.ctypes.data
    del large
    gc.collect()
    assert allocate_frames(1000).ctypes.data != place


async def test_frames_arrive_with_their_content_at_sending_although_their_memory_is_reused() -> None:
    with zmq.asyncio.Context() as context, context.socket(zmq.PULL) as data, context.socket(zmq.ROUTER) as control:
        sockets = connected_to(context, data, control)
        sizes = [0, 1, 1023, 1024, 100_000, 5_000]
        try:
            for turn in range(20):
                memory = allocate_frames(sum(sizes))
                memory[:] = turn
                frames: list[Buffer] = []
                at = 0
                for size in sizes:
                    frames.append(memory.data[at : at + size])
                    at += size
                frames.append(b"\xff" * turn)  # not in such memory
                while frames:
                    del frames[: await sockets.send_frames(frames)]
                # This process has no reference to it any more, and the next turn overwrites free memory.
                del memory
            for turn in range(20):
                for size in sizes:
                    assert await asyncio.wait_for(data.recv(), 10) == bytes([turn]) * size
                assert await asyncio.wait_for(data.recv(), 10) == b"\xff" * turn
        finally:
            await sockets.close(Goodbye("end"))


async def test_without_room_nothing_is_sent_and_the_wait_ends_when_there_is_room_again() -> None:
    with zmq.asyncio.Context() as context, context.socket(zmq.PULL) as data, context.socket(zmq.ROUTER) as control:
        data.setsockopt(zmq.RCVHWM, 1)
        sockets = connected_to(context, data, control)
        frames: list[Buffer] = []
        frames += [allocate_frames(MIB).data for _ in range(8)] * 100
        try:
            n_sent = 0
            while n_sent < 100 and (n := await asyncio.wait_for(sockets.send_frames(frames), 10)):
                n_sent += n
            waiting = asyncio.create_task(sockets.send_frames(frames))
            while not waiting.done():
                await asyncio.wait_for(data.recv(copy=False), 10)
            assert await waiting >= 0
        finally:
            await sockets.close(Goodbye("end"))
