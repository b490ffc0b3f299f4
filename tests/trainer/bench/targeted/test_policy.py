import torch

from trainer.bench.targeted.branches import Hints, header_of, read, read_hinted, replies_of
from trainer.bench.targeted.play import Rollouts, Sampler, play
from trainer.bench.targeted.policy import Policy, PolicyConfig, Trunk
from trainer.bench.targeted.world import HEADER, draw_prompts, reminder
from trainer.seeds import generator

CONFIG = PolicyConfig(num_layers=2, num_heads=2, width=16, hidden=16)


def a_policy() -> Policy:
    torch.manual_seed(0)
    return Policy(CONFIG)


def some_rollouts(policy: Policy) -> Rollouts:
    prompts = draw_prompts(6, turns_per_goal=1.0, draw=generator(0, "prompts"))
    return play(Sampler(policy, prompts, draw=generator(0, "replies")), prompts)


def test_a_policy_that_reads_an_episode_gives_the_log_probabilities_it_sampled_with() -> None:
    policy = a_policy()
    rollouts = some_rollouts(policy)
    said_BR3V, _ = read(policy, rollouts)
    read_BR3 = said_BR3V.gather(-1, replies_of(rollouts)[..., None])[..., 0]
    played = rollouts.is_played_BR
    assert not played.all()
    assert torch.allclose(read_BR3[played], rollouts.logprobs_BR3[played], atol=1e-5)


def test_a_hint_read_in_a_branch_is_the_same_as_the_whole_context_read_anew() -> None:
    policy = a_policy()
    rollouts = some_rollouts(policy)
    rows_N, turns_N = torch.tensor([0, 3, 3]), torch.tensor([0, 2, 5])
    tokens_NH = reminder(rollouts.prompts.tools_BK2[rows_N], draw=generator(0, "hints"))
    hints = Hints(rows_N=rows_N, turns_N=turns_N, tokens_NH=tokens_NH)
    replies_N3 = replies_of(rollouts)[rows_N, turns_N]
    branched_N3V = read_hinted(policy, read(policy, rollouts)[1], hints, replies_N3)
    for number, (row, turn) in enumerate(zip(rows_N, turns_N, strict=True)):
        whole = torch.cat([
            rollouts.tokens_BT[row, : header_of(turn)],
            tokens_NH[number],
            torch.tensor([HEADER]),
            replies_N3[number],
        ])
        hidden_1TD = policy(whole[None, :-1], memory=Trunk())
        alone_3V = policy.logprobs(hidden_1TD[0, -3:])
        assert torch.allclose(branched_N3V[number], alone_3V, atol=1e-5)


def test_an_empty_hint_changes_nothing() -> None:
    policy = a_policy()
    rollouts = some_rollouts(policy)
    said_BR3V, trunk = read(policy, rollouts)
    rows_N, turns_N = torch.tensor([1, 4]), torch.tensor([3, 1])
    nothing = Hints(rows_N=rows_N, turns_N=turns_N, tokens_NH=torch.zeros(2, 0, dtype=torch.long))
    hinted_N3V = read_hinted(policy, trunk, nothing, replies_of(rollouts)[rows_N, turns_N])
    assert torch.allclose(hinted_N3V, said_BR3V[rows_N, turns_N], atol=1e-5)


def test_what_comes_later_in_an_episode_does_not_change_what_is_said_before() -> None:
    policy = a_policy()
    rollouts = some_rollouts(policy)
    before, _ = read(policy, rollouts)
    turn = 4
    rollouts.tokens_BT[:, header_of(torch.tensor(turn)) :] = HEADER
    after, _ = read(policy, rollouts)
    assert torch.equal(before[:, :turn], after[:, :turn])
    assert not torch.equal(before[:, turn:], after[:, turn:])
