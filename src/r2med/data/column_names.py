"""Common names of columns for documents, questions and judgements, in English, German, French and Spanish."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

_GENERIC_IDS = frozenset("id nr no number nummer num numero key uid lfdnr lfd ref code".split())
_DOCUMENT_IDS = frozenset(
    "docid documentid noteid passageid pid corpusid articleid pmid reportid recordid sampleid accession "
    "accessionnumber filename "
    "dokumentid doknr dokumentnr dokumentennummer befundid befundnr befundnummer berichtid berichtnr berichtsnummer "
    "notizid fallid fallnr fallnummer probennr probennummer auftragsnummer auftragsnr "
    "iddocument docno nodocument numerodocument idnote idcompterendu nocompterendu numerocompterendu identifiant "
    "nodossier numerodossier iddossier "
    "iddocumento nodocumento numerodocumento idnota idinforme ninforme nodeinforme numerodeinforme numeroinforme "
    "identificador".split()
)
_NUMBER_WORDS = frozenset("id nr no num numero nummer number".split())
_QUESTION_IDS = frozenset(
    "queryid qid questionid questionno questionnr questionnumber frageid fragenr fragennr fragenummer anfrageid "
    "idquestion noquestion numeroquestion idpregunta nopregunta npregunta numeropregunta numerodepregunta".split()
)
_QUESTIONS = frozenset(
    "query queries question questions frage fragen suchfrage anfrage pregunta preguntas consulta requete".split()
)
_RELEVANT = frozenset("relevant relevante relevantes relevants pertinent pertinente pertinents pertinentes".split())

NAMES: Mapping[str, frozenset[str]] = {
    "id": _GENERIC_IDS | _DOCUMENT_IDS,
    "text": frozenset(
        "text contents content passage body document note notes abstract article description paragraph chunk report "
        "fulltext summary freetext findings finding impression conclusion history indication notetext reporttext "
        "befund befundtext befunde bericht berichtstext notiz freitext verlauf beurteilung anamnese epikrise arztbrief "
        "fragestellung indikation zusammenfassung beschreibung dokument "
        "texte compterendu rapport observation observations contenu resume antecedents motif resultat resultats "
        "texto informe nota contenido descripcion hallazgos resumen conclusiones antecedentes motivo observaciones "
        "juicioclinico".split()
    ),
    "title": frozenset(
        "title heading headline subject section titel betreff uberschrift ueberschrift titre objet titulo "
        "asunto".split()
    ),
    "query_id": _QUESTION_IDS | (_GENERIC_IDS - {"ref", "code"}),
    "query": _QUESTIONS | {"text", "prompt", "case", "vignette", "texte", "texto"},
    "answer": frozenset(
        "answer answers diagnosis solution expected antwort antworten diagnose losung loesung reponse reponses "
        "diagnostic respuesta respuestas diagnostico solucion".split()
    ),
    "relevant": _RELEVANT
    | _DOCUMENT_IDS
    | frozenset(
        "relevantid relevantids relevantdocs relevantdocuments relevantnotes positives gold goldids docids documentids "
        "noteids passageids evidence source document documents note report reports "
        "relevantedokumente relevantebefunde relevanteberichte relevantenotizen treffer beleg belege quelle quellen "
        "befundnummern befund bericht dokument "
        "documentspertinents documentpertinent comptesrenduspertinents notespertinentes sources compterendu "
        "documentosrelevantes informesrelevantes notasrelevantes fuente fuentes documento informe nota".split()
    ),
    "grade": _RELEVANT
    | frozenset(
        "grade grades score relevance rel rating isrelevant label judgement judgment "
        "relevanz bewertung urteil istrelevant pertinence estpertinent jugement relevancia esrelevante "
        "pertinencia puntuacion calificacion".split()
    ),
    "links": frozenset("link links url urls reference references linked pages".split()),
}
"""Role -> common names of its column, as `plain_name` writes them."""

QUESTION_NAMES = _QUESTIONS
"""Names that only a column of questions has."""

QUESTION_IDS = _QUESTION_IDS
"""Names that only a column of question ids has."""

DOCUMENT_IDS = _DOCUMENT_IDS
"""Names that only a column of document ids has."""

RELEVANCE_NAMES = _RELEVANT | {
    "relevance",
    "isrelevant",
    "relevanz",
    "istrelevant",
    "pertinence",
    "relevancia",
    "grade",
}
"""Names of columns that hold the relevance of a document. Such a column must not be ignored silently."""

OTHER_NAMES = frozenset(
    "date time age sex gender patient patientid name firstname ward author doctor department unit value result "
    "datum uhrzeit alter geschlecht patientenid patid patientennr vorname station arzt abteilung einheit wert klinik "
    "heure sexe nom prenom service medecin unite valeur dateexamen "
    "fecha hora edad sexo paciente nombre apellidos medico servicio unidad valor resultado "
    "comment comments kommentar commentaire comentario bemerkung remarque".split()
)
"""Names of columns that are neither searched nor judged. They help to recognise a row of column names."""

ALL_NAMES = frozenset().union(*NAMES.values(), OTHER_NAMES) - {"no", "x"}
"""All known names. `no` is left out because it can mean "no" as well as "number"."""

COVER_SHEET = re.compile(
    r"^(cover|title|legend|read.?me|info|about|codebook|data.?dictionary|lookup|deckblatt|titelblatt|legende|hinweise?"
    r"|erl[aä]uterung|page de garde|couverture|l[ée]gende|lisez|portada|car[aá]tula|leyenda|instrucciones"
    r"|instructions?|anleitung|metadat(a|en|os))(?![^\W\d_])",
    re.IGNORECASE,
)
"""Names of sheets that explain the other sheets."""

QUESTION_FILE = re.compile(r"quer|question|ask|frage|pregunta|consulta|requ[eê]te", re.IGNORECASE)
"""Names of files and sheets that hold questions."""


def plain_name(name: str) -> str:
    """Return a name in lower case, with letters and digits only: `N.º de informe` becomes `nodeinforme`."""
    return re.sub(r"[^a-z]", "", _folded(name))


def is_called_id(name: str) -> bool:
    """Return True if a name is that of an id column, or begins or ends with such a word, as `Nº petición` does."""
    words = re.findall(r"[a-z]+", _folded(name))
    return plain_name(name) in NAMES["id"] or (bool(words) and not {words[0], words[-1]}.isdisjoint(_NUMBER_WORDS))


def _folded(name: str) -> str:
    text = unicodedata.normalize("NFKD", name.replace("ß", "ss").lower())
    return "".join(letter for letter in text if not unicodedata.combining(letter))
