"""Answers as LLMs write them, collected before the code that reads them was opened: W3's, open ones, choices."""

from typing import NamedTuple

# The answers that were called refusals and never reached a judge (issue 53.2, W3).
CAREFUL = (
    "The passages do not mention the patient's age. The most likely diagnosis is acute gout [1].",
    "As an AI language model I cannot examine him, but this picture is acute gout until proven otherwise [1].",
    "I'm sorry to hear about your father's pain. The sudden swelling of one big toe is typical of acute gout [1].",
    "I cannot give medical advice. That said, the findings point to acute gout [1][2].",
    "There is not enough information to exclude septic arthritis, so aspirate the joint; "
    "acute gout is most likely [2].",
    "None of the passages names the drug directly. Colchicine within 12 hours of onset is the usual first choice [1].",
)

OPEN_ANSWERS = (
    "Acute gout.",
    "The most likely diagnosis is pulmonary embolism, given the pleuritic pain and the recent long flight.",
    "I don't have access to the ECG, but ST elevation in II, III and aVF would mean an inferior infarction.",
    "Unfortunately, no cure exists; riluzole prolongs survival by a few months.",
    "While I'm not a doctor, these symptoms fit Graves' disease [2].",
    "It is unclear from the passages how long he has smoked. Start varenicline and offer counselling [1][3].",
    "No.",
    "None. Stop all antibiotics, since the urine is sterile and she has no symptoms.",
    "Sorry, I misread the potassium at first: at 6.8 mmol/l give calcium gluconate at once.",
    "The evidence is insufficient to recommend screening in adults without symptoms.",
    "Unknown primary carcinoma with metastases to the axillary lymph nodes.",
    "I am unable to find a dose for children in the passages; for adults it is 400 mg daily.",
    "Refusal to bear weight on one leg with fever in a child is septic arthritis of the hip until proven otherwise.",
    "Die wahrscheinlichste Diagnose ist eine Lungenembolie; das Alter der Patientin wird nicht genannt.",
    "Es tut mir leid, das zu hören. Die Beschwerden sprechen für eine Gürtelrose.",
    "Le diagnostic le plus probable est une crise de goutte, bien que les passages ne donnent pas son âge.",
    "1) Bacterial meningitis 2) Ceftriaxone plus dexamethasone 3) Lumbar puncture after CT",
    "Cannot be excluded: myocarditis. Most probable: acute pericarditis, because the pain eases when he sits up.",
    "As an artificial intelligence I may be wrong, yet the rash behind the ears points to measles.",
    "{patient: 54 m} Addison's disease",
    "I cannot answer this question.",
    "None.",
    "N/A",
    "I don't know.",
    "The passages do not contain the answer.",
    "I'm sorry, but I can't help with that.",
    "As an AI language model, I am not able to provide a diagnosis. Please see a physician.",
    "Insufficient information.",
    "It is not possible to determine the diagnosis from the passages given.",
    "Based on the provided documents, there is no mention of this condition.",
    "Could you tell me more about the patient's history before I answer?",
    "This could be many things. I would recommend that you consult a healthcare professional.",
    "Cannot determine.",
    "Not stated.",
    "Ich kann diese Frage anhand der Textstellen nicht beantworten.",
    "Das geht aus den Unterlagen nicht hervor.",
    "Je ne peux pas répondre à cette question.",
    "I must decline to answer, as this may be harmful.",
    "Unable to answer: none of the passages is about the question.",
    "No answer can be given without laboratory values.",
)

JOINT = {
    "A": "Acute gout",
    "B": "Septic arthritis",
    "C": "Pseudogout",
    "D": "Rheumatoid arthritis",
    "E": "Reactive arthritis",
}
VERDICT = {"A": "Yes", "B": "No", "C": "Maybe"}
DOSE = {"A": "5 mg", "B": "10 mg", "C": "50 mg", "D": "100 mg"}
BRUST = {"A": "Lungenembolie", "B": "Myokardinfarkt", "C": "Aortendissektion", "D": "Pneumothorax"}
VITAMIN = {"A": "Vitamin A", "B": "Vitamin B12", "C": "Vitamin C", "D": "Vitamin D"}


class ChoiceSentence(NamedTuple):
    """An answer to a question with options, and the option it states as its choice (None: it states none)."""

    options: dict[str, str]
    text: str
    choice: str | None


CHOICE_SENTENCES = (
    ChoiceSentence(JOINT, "A", "A"),
    ChoiceSentence(JOINT, "B.", "B"),
    ChoiceSentence(JOINT, "(c)", "C"),
    ChoiceSentence(JOINT, "**D**", "D"),
    ChoiceSentence(JOINT, "The answer is B.", "B"),
    ChoiceSentence(JOINT, "Answer: C", "C"),
    ChoiceSentence(JOINT, "The correct answer is (D) Rheumatoid arthritis.", "D"),
    ChoiceSentence(JOINT, "Option E is correct.", "E"),
    ChoiceSentence(JOINT, "Pseudogout", "C"),
    ChoiceSentence(JOINT, "C. Pseudogout, because of the rhomboid crystals.", "C"),
    ChoiceSentence(JOINT, "B) Septic arthritis", "B"),
    ChoiceSentence(JOINT, "The most likely diagnosis is septic arthritis [2].", "B"),
    ChoiceSentence(JOINT, "A is wrong because the crystals are rhomboid. The answer is C.", "C"),
    ChoiceSentence(JOINT, "Septic arthritis must be excluded first, but the answer is A.", "A"),
    ChoiceSentence(
        JOINT, "A fever would suggest infection. He has none, so the best answer is **A: Acute gout**.", "A"
    ),
    ChoiceSentence(JOINT, "Not B. The joint fluid is sterile and shows needles. Final answer: A", "A"),
    ChoiceSentence(JOINT, "I choose D.", "D"),
    ChoiceSentence(JOINT, "My final choice is option C, pseudogout.", "C"),
    ChoiceSentence(JOINT, "Either A or C.", None),
    ChoiceSentence(JOINT, "The answer is A or B.", None),
    ChoiceSentence(JOINT, "Answer: A and D", None),
    ChoiceSentence(JOINT, "None of the above.", None),
    ChoiceSentence(JOINT, "I cannot decide without the joint fluid.", None),
    ChoiceSentence(JOINT, "A patient with such a history needs an aspiration of the joint.", None),
    ChoiceSentence(JOINT, "Lyme arthritis", None),
    ChoiceSentence(JOINT, "The answer is F.", None),
    ChoiceSentence(VERDICT, "Yes", "A"),
    ChoiceSentence(VERDICT, "No, the trial found no difference.", "B"),
    ChoiceSentence(VERDICT, "Maybe. The studies are small and disagree.", "C"),
    ChoiceSentence(VERDICT, "The answer is yes.", "A"),
    ChoiceSentence(VERDICT, "There is no evidence on this in the passages.", None),
    ChoiceSentence(DOSE, "5 mg", "A"),
    ChoiceSentence(DOSE, "The recommended dose is 50 mg daily.", "C"),
    ChoiceSentence(DOSE, "Answer: D (100 mg)", "D"),
    ChoiceSentence(DOSE, "Start with 20 mg.", None),
    ChoiceSentence(BRUST, "Die richtige Antwort ist B.", "B"),
    ChoiceSentence(BRUST, "Antwort: C) Aortendissektion", "C"),
    ChoiceSentence(BRUST, "Am wahrscheinlichsten ist eine Lungenembolie.", "A"),
    ChoiceSentence(VITAMIN, "Vitamin D", "D"),
    ChoiceSentence(VITAMIN, "She lacks vitamin B12; the answer is B.", "B"),
)
