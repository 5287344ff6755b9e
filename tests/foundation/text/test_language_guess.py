"""The language of texts is guessed from single sentences and from samples of documents."""

import pytest

from r2med.foundation.text.language_guess import guess_language, mixed_languages

SENTENCES = {
    "en": [
        "The patient was admitted with fever and a dry cough for three days.",
        "No evidence of fracture on the left side; follow-up in two weeks.",
        "Pt c/o chest pain since this morning, radiating to the left arm.",
    ],
    "de": [
        "Der Patient wurde mit Fieber und trockenem Husten aufgenommen.",
        "Kein Anhalt für eine Fraktur der linken Hand, Kontrolle in zwei Wochen.",
        "Pat. klagt seit gestern über Schmerzen im rechten Knie.",
    ],
    "fr": [
        "Le patient a été hospitalisé pour une fièvre et une toux sèche.",
        "Pas de fracture visible à gauche, contrôle dans deux semaines.",
        "Douleur thoracique depuis ce matin, irradiant vers le bras gauche.",
    ],
    "es": [
        "El paciente ingresó por fiebre y tos seca de tres días de evolución.",
        "No se observa fractura en el lado izquierdo; control en dos semanas.",
        "Dolor torácico desde esta mañana, irradiado al brazo izquierdo.",
    ],
    "it": [
        "Il paziente è stato ricoverato per febbre e tosse secca da tre giorni.",
        "Non si osserva alcuna frattura della mano sinistra, controllo tra due settimane.",
        "Dolore al torace dalla mattina, con irradiazione al braccio sinistro.",
    ],
    "pt": [
        "O paciente foi internado com febre e tosse seca há três dias.",
        "Não se observa fratura no lado esquerdo; controle em duas semanas.",
        "Dor no peito desde a manhã, que irradia para o braço esquerdo.",
    ],
    "nl": [
        "De patiënt werd opgenomen met koorts en een droge hoest.",
        "Geen aanwijzingen voor een fractuur aan de linkerzijde, controle over twee weken.",
        "Pijn op de borst sinds vanmorgen, met uitstraling naar de linkerarm.",
    ],
    "pl": [
        "Pacjent został przyjęty z gorączką i suchym kaszlem.",
        "Nie stwierdzono złamania po lewej stronie, kontrola za dwa tygodnie.",
        "Ból w klatce piersiowej od rana, który promieniuje do lewej ręki.",
    ],
    "ru": [
        "Пациент поступил с лихорадкой и сухим кашлем в течение трёх дней.",
        "Перелома слева не выявлено, контроль через две недели.",
        "Боль в груди с утра, отдаёт в левую руку.",
    ],
    "ar": [
        "دخل المريض إلى المستشفى مع حمى وسعال جاف منذ ثلاثة أيام.",
        "لا يوجد كسر في الجانب الأيسر، المراجعة بعد أسبوعين.",
        "ألم في الصدر منذ الصباح يمتد إلى الذراع الأيسر.",
    ],
    "vi": [
        "Bệnh nhân nhập viện vì sốt và ho khan trong ba ngày.",
        "Không có gãy xương ở bên trái, tái khám sau hai tuần.",
        "Đau ngực từ sáng nay, lan đến cánh tay trái và có khó thở.",
    ],
    "zh": [
        "患者因发热和干咳三天入院。",
        "左侧未见骨折，两周后复查。",
        "今晨起胸痛，向左臂放射，行CT检查。",
    ],
    "ko": [
        "환자는 3일간의 발열과 마른기침으로 입원하였다.",
        "왼쪽에 골절은 보이지 않으며 2주 후 재검.",
        "오늘 아침부터 흉통이 있었고 CT 검사를 시행함.",
    ],
    "sv": [
        "Patienten togs in med feber och torrhosta sedan tre dagar.",
        "Inga tecken till fraktur på vänster sida, kontroll om två veckor.",
        "Smärta i bröstet sedan i morse, som strålar ut i vänster arm.",
    ],
    "da": [
        "Patienten blev indlagt med feber og tør hoste i tre dage.",
        "Der er ikke fundet tegn på brud i venstre side, kontrol om to uger.",
        "Smerter i brystet siden i morges, som stråler ud i venstre arm.",
    ],
    "no": [
        "Pasienten ble innlagt med feber og tørrhoste i tre dager.",
        "Det er ikke funnet brudd på venstre side, kontroll om to uker.",
        "Smerter i brystet siden i dag tidlig, som stråler ut i venstre arm.",
    ],
    "fi": [
        "Potilas otettiin osastolle, koska hänellä oli kuumetta ja kuiva yskä.",
        "Vasemmalla puolella ei ole murtumaa, kontrolli on kahden viikon kuluttua.",
        "Rintakipu on alkanut aamulla ja se säteilee vasempaan käteen.",
    ],
    "hu": [
        "A beteget láz és száraz köhögés miatt vettük fel az osztályra.",
        "A bal oldalon nem látható törés, a kontroll két hét múlva lesz.",
        "A mellkasi fájdalom reggel óta tart, és a bal karba sugárzik.",
    ],
}
NOTES = {
    "de": [
        "RR 140/80, Puls 76, EKG unauffällig, Labor o. B.",
        "Z. n. Appendektomie 2012, keine Allergien bekannt.",
        "Wunde reizlos, Fäden gezogen, Patient beschwerdefrei.",
        "Bei der Sonographie zeigte sich eine vergrößerte Leber.",
        "Therapie: Ibuprofen 600 mg bei Bedarf, Wiedervorstellung bei Verschlechterung.",
    ],
    "fr": [
        "TA 140/80, pouls 76, ECG sans particularité.",
        "Antécédents : appendicectomie en 2012, pas d'allergie connue.",
        "Plaie propre, fils retirés, patient asymptomatique.",
        "L'échographie montre un foie augmenté de volume.",
        "Traitement : ibuprofène 600 mg si besoin, à revoir en cas d'aggravation.",
    ],
    "es": [
        "TA 140/80, pulso 76, ECG sin alteraciones.",
        "Antecedentes: apendicectomía en 2012, sin alergias conocidas.",
        "Herida limpia, puntos retirados, paciente asintomático.",
        "La ecografía muestra un hígado aumentado de tamaño.",
        "Tratamiento: ibuprofeno 600 mg si precisa, volver si empeora.",
    ],
    "en": [
        "BP 140/80, pulse 76, ECG unremarkable, labs pending.",
        "History of appendectomy in 2012, no known allergies.",
        "Wound clean, sutures removed, patient asymptomatic.",
        "Ultrasound showed an enlarged liver.",
        "Ibuprofen 600 mg as needed, return if symptoms worsen.",
    ],
    "it": [
        "PA 140/80, polso 76, ECG nella norma.",
        "Pregressa appendicectomia nel 2012, nessuna allergia nota.",
        "L'ecografia mostra un fegato ingrandito.",
        "Ferita pulita, punti rimossi, paziente asintomatico.",
    ],
    "pt": [
        "PA 140/80, pulso 76, ECG sem alterações.",
        "Apendicectomia em 2012, sem alergias conhecidas.",
        "A ecografia mostrou um fígado aumentado.",
        "Ferida limpa, pontos retirados, doente assintomático.",
    ],
    "nl": [
        "RR 140/80, pols 76, ECG zonder afwijkingen.",
        "Appendectomie in 2012, geen bekende allergieën.",
        "De echo toont een vergrote lever.",
        "Wond schoon, hechtingen verwijderd, patiënt klachtenvrij.",
    ],
    "pl": [
        "RR 140/80, tętno 76, EKG bez zmian.",
        "Stan po appendektomii w 2012 roku, bez znanych alergii.",
        "W badaniu USG powiększona wątroba.",
        "Rana czysta, szwy usunięte, pacjent bez dolegliwości.",
    ],
    "ru": [
        "АД 140/80, пульс 76, ЭКГ без особенностей.",
        "Аппендэктомия в 2012 году, аллергии не известны.",
        "На УЗИ увеличенная печень.",
        "Рана чистая, швы сняты, жалоб нет.",
    ],
    "ar": [
        "ضغط الدم 140/80، النبض 76، تخطيط القلب طبيعي.",
        "استئصال الزائدة في عام 2012، لا توجد حساسية معروفة.",
        "أظهر التصوير تضخما في الكبد.",
        "الجرح نظيف، أزيلت الغرز، والمريض بدون أعراض.",
        "العلاج: إيبوبروفين 600 ملغ عند الحاجة، والعودة إذا ساءت الحالة.",
    ],
}
"""Notes in the short style of wards, with few stop words."""
OTHERS = {
    "ja": [
        "患者は3日間の発熱と乾いた咳のため入院した。",
    ],
    "el": [
        "Ο ασθενής εισήχθη με πυρετό και ξηρό βήχα.",
    ],
    "he": [
        "החולה אושפז עם חום ושיעול יבש.",
    ],
    "fa": [
        "بیمار با تب و سرفه خشک از سه روز پیش بستری شد.",
    ],
    "cs": [
        "Pacient byl přijat s horečkou a suchým kašlem trvajícím tři dny.",
        "Bez známek zlomeniny vlevo, kontrola za dva týdny.",
        "Bolest na hrudi od rána, která vystřeluje do levé ruky.",
        "Na ultrazvuku je zvětšená játra.",
        "Rána je čistá, stehy odstraněny.",
    ],
    "ro": [
        "Pacientul a fost internat cu febră și tuse seacă de trei zile.",
        "Nu există semne de fractură pe partea stângă, control peste două săptămâni.",
        "Durere toracică de azi dimineață, care iradiază în brațul stâng.",
        "Ecografia arată un ficat mărit.",
        "Plaga este curată, firele au fost scoase.",
    ],
    "tr": [
        "Hasta üç gündür süren ateş ve kuru öksürük ile yatırıldı.",
        "Sol tarafta kırık izlenmedi, iki hafta sonra kontrol.",
        "Sabahtan beri sol kola yayılan göğüs ağrısı var.",
        "Ultrasonda karaciğer büyümüş.",
        "Yara temiz, dikişler alındı.",
    ],
    "list": [
        "aspirin 100 mg; ramipril 5 mg; metoprolol 47.5 mg; HbA1c 7.2 %",
    ],
    "numbers": [
        "12 13",
        "",
        "?",
    ],
}


@pytest.mark.parametrize("code", SENTENCES)
def test_three_sentences_are_enough_to_recognise_a_language(code):
    guess = guess_language(SENTENCES[code])
    assert guess is not None and (guess.code, guess.texts) == (code, 3)


@pytest.mark.parametrize("code", NOTES)
def test_notes_with_few_stop_words_are_recognised_together(code):
    guess = guess_language(NOTES[code])
    assert guess is not None and guess.code == code


@pytest.mark.parametrize("texts", OTHERS.values(), ids=OTHERS)
def test_other_languages_lists_and_numbers_are_not_guessed(texts):
    assert guess_language(texts) is None


def test_mixed_texts_have_no_language():
    assert guess_language(texts[0] for texts in SENTENCES.values()) is None
    assert guess_language([*SENTENCES["de"], *SENTENCES["fr"]]) is None


def test_the_share_counts_the_texts_that_look_alike():
    guess = guess_language([*SENTENCES["de"], SENTENCES["ru"][0], "17"])
    assert guess is not None and (guess.name, guess.share, guess.texts) == ("German", 0.75, 4)


TELEGRAPHIC = [
    ["44-jähriger Patient. Aufnahme wegen Dyspnoe. Sono Abdomen o.B."] * 60,
    ["60-jähriger Pat. TSH supprimiert, fT4 erhöht. Sonographisch diffus vergrößerte Schilddrüse."] * 10,
    ["EKG o.B. Hb 7,9.", "Rö-Thorax: Stauung, Erguss bds.", "VHF, OAK. Entlassung in gutem AZ.", "Fäden ex."],
]
"""German notes without sentences."""
UNCLEAR = [
    ["EKG o.B. Hb 7,9."] * 60,
    ["CCT o.B. CCT o.B. CRP 64. Procedere: Entlassung."] * 60,
    ["72J, m, KHK, Z.n. PTCA de novo, LAD, EF 35 %. Th: ASS, Clopidogrel."] * 60,
    ["EKG o.B.", "Hb 7,9", "CRP 64", "RR 120/80"],
    ["Der Patient wurde mit Fieber aufgenommen.", "Hb", "CRP", "CT"],
    ["65M c/o SOB, hx COPD. Rx nebs, abx.", "Young pt, T2DM, HTN. Metformin stopped."],
    ["Állapota stabil. EKG normális.", "Panaszmentes. Gyógyszerek változatlanok."],
]
"""Abbreviations, single letters and letters of several languages."""


@pytest.mark.parametrize("notes", TELEGRAPHIC, ids=lambda notes: notes[0][:15])
def test_telegraphic_german_is_recognised(notes):
    guess = guess_language(notes)
    assert guess is not None and guess.code == "de"


@pytest.mark.parametrize("notes", UNCLEAR, ids=lambda notes: notes[0][:15])
def test_single_letters_and_a_few_words_are_no_language(notes):
    assert guess_language(notes) is None
    assert mixed_languages(notes) == {}
