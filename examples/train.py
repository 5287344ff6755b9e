"""Fine-tune a model with the rows of `r2med data training` (triplets.jsonl): one model, or one for each fold.

python examples/train.py train models --base sentence-transformers/all-MiniLM-L6-v2 --seeds 5

Run it again after a kill: it goes on from the last checkpoint. Models of folds are trained with each seed, and r2med
takes seeds as repeats. --cross trains a cross-encoder. --lora trains an adapter only (pip install peft) and merges it
at the end.
"""

import argparse
import shutil
from pathlib import Path

import sentence_transformers as st
from datasets import load_dataset
from sentence_transformers.cross_encoder.losses import MultipleNegativesRankingLoss as CrossLoss
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss as DenseLoss

words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
words.add_argument("rows", type=Path, help="the folder of r2med data training")
words.add_argument("out", type=Path, help="the folder of the trained models")
words.add_argument("--base", default="sentence-transformers/all-MiniLM-L6-v2", help="the model before training")
words.add_argument("--epochs", type=float, default=4)
words.add_argument("--batch", type=int, default=32)
words.add_argument("--seeds", type=int, default=1, help="number of models for each fold")
words.add_argument("--cross", action="store_true")
words.add_argument("--lora", action="store_true")
given = words.parse_args()

folded = (given.rows / "folds.jsonl").is_file()
every = [(seed, rows) for seed in range(given.seeds if folded else 1) for rows in given.rows.rglob("triplets.jsonl")]
for seed, rows in sorted(every):
    out = given.out / (f"seed-{seed}" if folded else "") / rows.parent.relative_to(given.rows)
    if (out / "training.json").is_file():
        continue  # it was trained before a kill
    if given.cross:
        model = st.CrossEncoder(given.base, num_labels=1)
        kinds = st.CrossEncoderTrainer, st.CrossEncoderTrainingArguments, CrossLoss
    else:
        model = st.SentenceTransformer(given.base)
        kinds = st.SentenceTransformerTrainer, st.SentenceTransformerTrainingArguments, DenseLoss
    if given.lora:
        from peft import LoraConfig, get_peft_model

        model[0].model = get_peft_model(model[0].model, LoraConfig(r=16, lora_alpha=32, target_modules="all-linear"))
    checkpoints, settings = out / "checkpoints", {"num_train_epochs": given.epochs, "learning_rate": 5e-5}
    settings |= {"warmup_ratio": 0.1, "seed": seed, "per_device_train_batch_size": given.batch}
    # The first copy of a positive is its own, and a second one in a batch would be a false negative.
    settings |= {"batch_sampler": "no_duplicates", "save_strategy": "epoch", "save_total_limit": 1, "report_to": "none"}
    data = load_dataset("json", data_files=str(rows), split="train")
    trainer = kinds[0](model, kinds[1](output_dir=str(checkpoints), **settings), data, loss=kinds[2](model))
    trainer.train(resume_from_checkpoint=any(checkpoints.glob("checkpoint-*")))
    if given.lora:
        model[0].model = model[0].model.merge_and_unload()
    model.save_pretrained(str(out))
    shutil.rmtree(checkpoints)
    shutil.copy(rows.with_name("training.json"), out)  # from it r2med knows what the model was trained with
if folded:
    shutil.copy(given.rows / "folds.jsonl", given.out)
