"""Train with TRL's GRPOTrainer on what a job file names, and print what each step took.

Run as `python trl_peer.py JOB.json` by a Python that has TRL. It replays given rollouts, or
samples them itself where the job gives a number of new tokens.
"""

import json
import sys
import time
import warnings

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer


def main(path):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with open(path, encoding="utf-8") as file:
        job = json.load(file)
    clock = Clock()
    trainer = GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(job["model"], dtype=torch.float32),
        args=settings(job),
        reward_funcs=reward,
        train_dataset=Dataset.from_list([{"prompt": text} for text in job["prompts"]]),
        processing_class=AutoTokenizer.from_pretrained(job["model"]),
        rollout_func=None if job["new_tokens"] else replay(job["steps"]),
        callbacks=[clock],
    )
    trainer.train()
    norms = [entry["grad_norm"] for entry in trainer.state.log_history if "grad_norm" in entry]
    sys.stdout.write(json.dumps({"cpu_s": clock.took(), "grad_norms": norms}))


def settings(job):
    """Return plain fp32 GRPO: no reference, no scaling of rewards, one step a batch of rollouts."""
    rollouts = job["group"] * job["num_prompts"]
    return GRPOConfig(
        output_dir=job["scratch"],
        per_device_train_batch_size=job["micro_batch"],
        gradient_accumulation_steps=rollouts // job["micro_batch"],
        num_generations=job["group"],
        max_completion_length=job["new_tokens"] or job["longest"],
        generation_kwargs={"min_new_tokens": job["new_tokens"]} if job["new_tokens"] else None,
        max_steps=job["num_steps"],
        learning_rate=job["lr"],
        lr_scheduler_type="constant",
        adam_beta2=0.95,
        max_grad_norm=1.0,
        temperature=1.0,
        beta=0.0,
        loss_type="dapo",
        scale_rewards="none",
        epsilon=0.2,
        epsilon_high=0.28,
        bf16=False,
        use_cpu=True,
        gradient_checkpointing=False,
        save_strategy="no",
        report_to="none",
        logging_steps=1,
        disable_tqdm=True,
        shuffle_dataset=False,
        log_completions=False,
        seed=0,
    )


def replay(steps):
    """Give the rollouts of one step after another."""
    left = iter(steps)

    def rollouts(prompts, _):
        rows = next(left)
        assert len(rows) == len(prompts), (len(rows), len(prompts))
        return {
            "prompt_ids": [row["prompt_ids"] for row in rows],
            "completion_ids": [row["completion_ids"] for row in rows],
            "logprobs": [row["logprobs"] for row in rows],
            "env_mask": [row["mask"] for row in rows],
            "given": [row["reward"] for row in rows],
        }

    return rollouts


def reward(completion_ids, given=None, **_):
    """Return the given rewards; for what was sampled here any that differ within a group."""
    return given or [float(sum(ids) % 7) for ids in completion_ids]


class Clock(TrainerCallback):
    """Read the CPU time after each step: the first is the warm-up."""

    def __init__(self):
        self.read_s = []

    def on_step_end(self, *_, **__):
        self.read_s.append(time.process_time())

    def took(self):
        return [
            after - before for before, after in zip(self.read_s[:-1], self.read_s[1:], strict=True)
        ]


if __name__ == "__main__":
    main(sys.argv[1])
