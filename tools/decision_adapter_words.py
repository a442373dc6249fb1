"""Own sentences for tools/train_decision_adapter.py, beside those of default_model_words.py.

A labelled set maps a label to (other names for it, a description, its sentences). A hash of the
sentence decides whether it is for training or for validation.
"""
from default_model_words import lines, words

EMOTIONS = {
    "joy": (words("happiness, delight, happy"), "the writer is glad", lines("""
        I got the place at the music school, I danced all the way home!
        Our daughter said her first word today and we cannot stop smiling.
        The whole street came to my party, best evening in years.
        Finally passed my driving test, I'm over the moon.
        We are having a baby!
        Sun on my face, coffee in my hand, nothing to do. Bliss.
        My brother is home after two years abroad and the house is full of laughter.
        They picked my drawing for the cover, I'm grinning from ear to ear.
        The tumour is gone. We laughed and cried and hugged everybody.
        I love my new job, I sing on the way there.
        What a lovely surprise visit, my heart is full.
        We won the quiz night and celebrated until two.
        It was the happiest day of my life.
        The garden is in bloom and so am I.""")),
    "anger": (words("rage, fury, angry"), "the writer is furious", lines("""
        He read my diary and then joked about it in front of everyone. How dare he.
        Third time this week that someone parked across my drive. I've had enough!
        They lied to my face and kept the deposit. I could scream.
        Stop talking over me in every single meeting!
        Whoever keyed my car is going to pay for it.
        My boss took the credit for my work again, I am boiling.
        Two hours on hold and then they hung up on me. Outrageous.
        I slammed the door so hard that the frame cracked.
        She promised to keep it secret and told the whole office. I'm livid.
        It makes my blood boil when people throw rubbish out of the window.
        You broke it, you hid it and you blamed my kid. Unbelievable nerve.
        I'm sick of being treated like a fool by this company.
        The neighbours drilled all night and shouted at me when I complained.
        Don't you ever speak to my mother like that again.""")),
    "sadness": (words("sorrow, grief, sad"), "the writer is sad", lines("""
        I still set two plates on the table, and then I remember.
        Our old dog died in my arms this morning.
        Nobody called on my birthday.
        He packed his bag, closed the door, and the flat has been silent since.
        I cried in the car before going in.
        We sold grandma's house today. I kept the key.
        Another letter of rejection. Maybe I am just not good enough.
        I miss her more with every winter.
        The children have left and the rooms feel so empty.
        She moved away and we both know that we will lose touch.
        Everything feels grey and heavy lately.
        I looked at the old photos and could not hold back the tears.
        My best friend did not come to say goodbye.
        It hurts to walk past the place where we met.""")),
    "fear": (words("anxiety, worry, afraid"), "the writer is afraid", lines("""
        Someone is walking behind me and has been since the station.
        The results come tomorrow and I have not slept for two nights.
        There was a noise downstairs. I am hiding in the bathroom.
        What if the rope does not hold?
        My hands shake whenever the phone rings from the hospital.
        The plane dropped and I thought that this was the end.
        I dread going back to school on Monday, they said they would wait for me.
        The water keeps rising and we are still on the ground floor.
        Please stay on the line, I don't dare to open the door.
        I'm terrified of losing my job before the baby comes.
        The doctor went quiet when she looked at the screen, and my heart stopped.
        I checked the locks three times and still lie awake.
        Spiders. In the bed. I can't go in there.
        I am so nervous about the operation that I feel sick.""")),
    "surprise": (words("astonishment, amazement, surprised"), "the writer did not expect it", lines("""
        Wait, you two are sisters? I had no idea!
        I opened the wall and found a second kitchen behind it.
        Of all people, my shy cousin is now a stand-up comedian.
        It snowed in June. I had to look twice.
        The quiet man next door turned out to have written my favourite book.
        I expected a bill and found a cheque instead. What?
        Nobody told me that there would be a llama in the lobby.
        He is eighty? I would have said sixty at most!
        Well, I did not see that ending coming.
        I turned around and there stood my whole class from thirty years ago.
        The box I bought for a pound holds a gold coin. I can't believe my eyes.
        Whoa, since when can you play the harp?
        Never in my life would I have guessed that it was you.
        The cat walked in with a sausage. We do not own sausages.""")),
    "disgust": (words("revulsion, repulsion, disgusted"), "the writer is disgusted", lines("""
        There was a hair in the soup, and then I saw what was under it.
        The fridge had been off for a month. I gagged when I opened it.
        He clipped his toenails on the train, next to my sandwich.
        The towels in the hotel were damp and smelled of feet.
        Maggots in the bin again, I nearly threw up.
        I bit into the apple and saw half a worm.
        The toilet at the station was beyond filthy, I had to leave.
        She licked the spoon and put it back into the pot. Yuck.
        The mould on the wall was furry and wet.
        That smell of rotten fish turned my stomach.
        Something slimy moved inside the shoe as I put my foot in.
        The milk came out in lumps and I had already taken a sip.
        He spat on the floor of the bus, right beside the pram. Vile.
        A rat swam in the pan of the deep fryer. I'll never eat there again, ugh.
        The stench from the drain made my eyes water and my stomach heave.
        I found someone else's plaster in my salad.
        His greasy hair left a stain on my pillow, I had to burn it.
        The pus ran down his leg. I had to look away.
        Eww, the sponge was alive.
        Green fur in the lunchbox, and the spoon stuck in it. I retched.""")),
    "love": (words("affection, tenderness, loving"), "the writer feels love", lines("""
        I watch you sleep and cannot believe that you chose me.
        Forty years married and I would say yes again today.
        Come here, little one, let me hold you a moment longer.
        You are my home, wherever we live.
        I kissed his forehead and tucked him in.
        My darling, every day with you is a gift.
        She is the kindest soul I know and I adore her.
        Thinking of you, counting the hours till I can hug you.
        Dear grandpa, I love you to the moon and back.
        He makes me tea every morning without asking, and I love him for it.
        Her hand fits in mine as if it had been made for it.
        I'd cross any ocean for you and you know it.
        My heart leaps every time her name lights up on the phone.
        To my sister: there's nobody on earth I hold dearer.
        I fell for him over a broken umbrella, and I am still falling.
        Sleep well, my sweet, I'm right beside you.
        He wrote my name in the margin of every book he owned.
        The way she hums while she cooks, I could listen for the rest of my life.
        You and I, against all weathers, always.
        I carry your picture in my wallet like a boy of sixteen.""")),
}

LANGUAGES = {
    "English": (["english"], "", lines("""
        The shop on the corner closes at six.
        Could you tell me where the nearest bank is?
        My sister has lived by the sea for ten years.
        We had to wait because the bridge was up.
        I never said that I could swim.
        Put the keys on the table when you leave.
        Autumn is the best season for long walks.
        They have been building that school since spring.
        Would you like another cup of tea?
        The children ran outside as soon as it stopped raining."""
    )),
    "German": (["german", "Deutsch"], "", lines("""
        Der Laden an der Ecke macht um sechs zu.
        Kannst du mir sagen, wo der Bahnhof ist?
        Meine Schwester wohnt seit zehn Jahren am Meer.
        Wir mussten lange auf den Bus warten.
        Das habe ich nie gesagt.
        Leg bitte die Schlüssel auf den Tisch.
        Im Herbst gehen wir gern im Wald spazieren.
        Morgen kommt der Handwerker und repariert die Heizung.
        Möchten Sie noch eine Tasse Tee?
        Die Kinder liefen hinaus, sobald es nicht mehr regnete.
        Ich hätte gern zwei Brötchen und einen Kaffee.""")),
    "French": (["french", "Français"], "", lines("""
        Le magasin du coin ferme à six heures.
        Pouvez-vous me dire où se trouve la gare ?
        Ma soeur habite au bord de la mer depuis dix ans.
        Nous avons dû attendre le bus longtemps.
        Je n'ai jamais dit cela.
        Pose les clés sur la table, s'il te plaît.
        En automne, nous aimons marcher dans la forêt.
        Demain, le plombier viendra réparer le chauffage.
        Voulez-vous encore une tasse de thé ?
        Les enfants sont sortis dès que la pluie s'est arrêtée.
        Je voudrais deux croissants et un café.""")),
    "Spanish": (["spanish", "Español"], "", lines("""
        La tienda de la esquina cierra a las seis.
        ¿Me puede decir dónde está la estación?
        Mi hermana vive junto al mar desde hace diez años.
        Tuvimos que esperar el autobús mucho tiempo.
        Yo nunca dije eso.
        Deja las llaves sobre la mesa, por favor.
        En otoño nos gusta caminar por el bosque.
        Mañana viene el fontanero a arreglar la calefacción.
        ¿Quiere usted otra taza de té?
        Los niños salieron en cuanto dejó de llover.
        Quisiera dos panecillos y un café con leche.""")),
    "Italian": (["italian", "Italiano"], "", lines("""
        Il negozio all'angolo chiude alle sei.
        Mi può dire dov'è la stazione?
        Mia sorella vive al mare da dieci anni.
        Abbiamo dovuto aspettare a lungo l'autobus.
        Non l'ho mai detto.
        Metti le chiavi sul tavolo, per favore.
        In autunno ci piace camminare nel bosco.
        Domani viene l'idraulico a riparare il riscaldamento.
        Vuole un'altra tazza di tè?
        I bambini sono usciti appena ha smesso di piovere.
        Vorrei due panini e un caffè.""")),
    "Portuguese": (["portuguese", "Português"], "", lines("""
        A loja da esquina fecha às seis.
        Pode dizer-me onde fica a estação?
        A minha irmã mora perto do mar há dez anos.
        Tivemos de esperar muito tempo pelo ônibus.
        Eu nunca disse isso.
        Deixa as chaves em cima da mesa, por favor.
        No outono gostamos de caminhar na floresta.
        Amanhã vem o canalizador para consertar o aquecimento.
        Você quer mais uma xícara de chá?
        As crianças saíram assim que parou de chover.
        Queria dois pãezinhos e um café.""")),
    "Dutch": (["dutch", "Nederlands"], "", lines("""
        De winkel op de hoek sluit om zes uur.
        Kunt u mij zeggen waar het station is?
        Mijn zus woont al tien jaar aan zee.
        We moesten lang op de bus wachten.
        Dat heb ik nooit gezegd.
        Leg de sleutels maar op tafel.
        In de herfst wandelen we graag in het bos.
        Wilt u nog een kopje thee?
        De kinderen gingen naar buiten zodra het droog was.
        Mijn fiets staat nog bij het zwembad.
        Hij heeft gisteren de hele dag in de tuin gewerkt.
        Weet jij hoe laat de winkels opengaan?
        We eten vanavond stamppot met worst.""")),
    "Swedish": (["swedish"], "", lines("""
        Affären på hörnet stänger klockan sex.
        Kan du säga mig var stationen ligger?
        Min syster har bott vid havet i tio år.
        Vi fick vänta länge på bussen.
        Det har jag aldrig sagt.
        Lägg nycklarna på bordet, är du snäll.
        På hösten går vi gärna i skogen.
        Vill du ha en kopp te till?
        Barnen sprang ut så fort det slutade regna.
        Hantverkaren kommer i morgon och lagar värmen.
        Jag skulle vilja ha två bullar och en kopp kaffe.
        Har du sett mina glasögon någonstans?""")),
    "Polish": (["polish"], "", lines("""
        Sklep na rogu zamykają o szóstej.
        Czy może mi pan powiedzieć, gdzie jest dworzec?
        Moja siostra mieszka nad morzem od dziesięciu lat.
        Musieliśmy długo czekać na autobus.
        Nigdy tego nie powiedziałem.
        Połóż klucze na stole.
        Jesienią lubimy spacerować po lesie.
        Jutro przyjdzie hydraulik naprawić ogrzewanie.
        Dzieci wybiegły na dwór, gdy tylko przestało padać.
        Poproszę dwie bułki i kawę z mlekiem.
        Czy widziałaś gdzieś moje okulary?
        Wieczorem pójdziemy razem do kina.""")),
}

TOPICS = {
    "sports": (words("sport, athletics"), "games, teams and athletes", lines("""
        The keeper saved two penalties and sent the home side through to the semi-final.
        After a five-hour battle on clay, the teenager knocked out the champion.
        The sprinter withdrew from the relay with a torn hamstring.
        They traded their point guard an hour before the deadline.
        A late try gave the visitors their first win in eleven matches.
        The cyclist attacked on the last climb and took the yellow jersey.
        Fans queued all night for tickets to the derby.
        The coach was sacked after four defeats in a row.
        She set a new national record in the 400 metres freestyle.
        The club confirmed the signing of the striker on a three-year deal.""")),
    "business": (words("economy, finance"), "companies, markets and money", lines("""
        The retailer will close forty branches and cut its dividend.
        Shares fell nine percent after the firm warned of weak demand.
        The central bank left rates where they were.
        Two rival brewers agreed to merge in a deal worth four billion.
        Orders at the plant have doubled and a third shift starts in May.
        The startup raised twelve million from investors in its second round.
        Unemployment dropped to its lowest level since the crisis.
        The carrier filed for bankruptcy and grounded its fleet.
        Profits at the furniture maker rose for the fifth quarter.
        The chief financial officer resigned over an accounting error.""")),
    "politics": (words("government, political news"), "elections, laws and parties", lines("""
        The opposition called for a vote of no confidence.
        Lawmakers passed the housing bill by a margin of three.
        The minister denied that she had promised to resign.
        Polling stations opened at seven in all twelve provinces.
        The two presidents signed a border treaty.
        Her party lost its majority in the upper house.
        The mayor wants to ban cars from the old town by referendum.
        Senators questioned the nominee for nine hours.
        The coalition collapsed in a dispute about pensions.
        The ambassador was called home in protest.""")),
    "entertainment": (words("film and music, show business, culture"), "films, music, shows and stars",
        lines("""
        The sequel topped the box office for the third weekend.
        The singer announced a farewell tour of stadiums.
        The series was renewed for two more seasons.
        Critics adored the director's new comedy, audiences stayed home.
        The band's lost album will finally be released.
        She won the award for best actress and thanked her cat.
        The finale of the talent show drew twelve million viewers.
        A musical about the moon landing opens on stage in June.
        The actor will play the detective one last time.
        Rehearsals for the festival have begun and the headliner is still secret.""")),
    "technology": (words("tech, computers, IT"), "computers, software and devices", lines("""
        The update fixes a flaw that let attackers read messages.
        The new phone folds twice and charges in fifteen minutes.
        The lab trained a language model on a single graphics card.
        A bug in the login library took thousands of sites offline.
        The browser will block tracking cookies by default.
        Engineers showed a chip that computes with light.
        The headset follows the eyes and needs no controller.
        The company open-sourced its database engine.
        Robots in the warehouse now plan their own routes.
        The laptop's battery can be replaced without tools.""")),
    "health": (words("medicine, medical news"), "illness, doctors and care", lines("""
        Walking half an hour a day lowers blood pressure, doctors found.
        The clinic has run out of flu shots.
        A new pill halves the number of migraine attacks.
        Surgeons reattached the boy's hand in a nine-hour operation.
        Measles cases have tripled since spring.
        Too little sleep raises the risk of diabetes, a study says.
        The hospital opened a ward for premature babies.
        Nurses explain how to treat a burn at home.
        The trial of the cancer vaccine enters its last phase.
        Patients with asthma should stay indoors this week.""")),
    "science": (words("research"), "research and discoveries", lines("""
        The probe sent back the first pictures of the comet's far side.
        Biologists described a frog that glows under moonlight.
        The detector recorded a particle that theory had not foreseen.
        Ice cores tell of a warm century two thousand years ago.
        Chemists built a molecule in the shape of a knot.
        The fossil shows that the animal had feathers.
        Astronomers counted eleven new moons.
        Bees can tell odd numbers from even ones, an experiment suggests.
        A telescope in the desert caught the light of a star that died before the Earth was born.
        Squid edit their own genetic messages when the water gets cold, the team reports.
        Nobody has yet explained why the magnetic field of Mars vanished.
        Mathematicians proved that the puzzle has no solution in whole numbers.
        The samples from the asteroid contain salts that form only in water.
        How do crows remember faces? A lab in Seattle put on masks to find out.
        Physicists cooled the gas to a hair above absolute zero.
        The bone from the cave belongs to an unknown relative of humans.
        A slime mould found the shortest way through the maze without a brain.
        Her thesis measures how quickly the continents drift apart.
        Two groups repeated the famous memory experiment and got a different result.
        Under the microscope the wing looks like a field of tiny roof tiles.""")),
    "travel": (words("tourism, holidays"), "trips and places to visit", lines("""
        The night train to the coast runs again from April.
        Pack light: the island has no roads and you walk from the pier.
        The hostel by the canal has the best breakfast in town.
        Visitors now need to book the temple a week ahead.
        Take the cable car at dawn, before the tour groups come.
        Three days are enough for the old harbour and the museums.
        The visa takes ten days and two photos.
        Our guide showed us caves that no map mentions.
        Buy the rail pass before you go, it is dearer at the border.
        We crossed the fjord by kayak and slept in a lighthouse.
        The best beach is not on the postcard but twenty minutes' walk behind it.
        From May on, cruise ships may no longer dock in the lagoon.
        Ask for a room at the back, the front faces the night market.
        On day three we swapped the bus for camels.
        The airline adds a direct flight to Madeira in winter.
        Do not miss the spice bazaar, and bring cash and an empty bag.
        Our backpacking trip through Laos cost less than a week at home.
        Travellers can leave their suitcases at the station from six.
        The campsite lies between vineyards, with a view of the castle.
        Jet lag hits harder when you fly east, so plan an idle first day.""")),
    "food": (words("cooking, recipes"), "dishes, recipes and restaurants", lines("""
        Fold the egg whites into the batter and bake until golden.
        The bistro serves a pumpkin ravioli that I still dream about.
        Let the dough rest overnight in a cool place.
        Toast the cumin first, then add onions and lentils.
        A pinch of salt brings out the chocolate.
        The cheese ripens for two years in the cellar.
        Simmer the bones for six hours to get a clear broth.
        Her new cookbook is all about leftovers.
        Rub the lamb with garlic and leave it in the marinade till tomorrow.
        Their dumplings are folded by three sisters behind a glass wall.
        If the sauce splits, whisk in a spoon of cold cream.
        Pickled radish goes surprisingly well with peanut butter.
        The cook lost his star and says that he sleeps better.
        Use day-old bread for the stuffing, fresh crumbs turn to glue.
        In spring we gather wild garlic and make pesto for the year.
        The new noodle place has a queue around the block at noon.
        Grate the zest before you squeeze the lemon.
        A good espresso runs for twenty-five seconds.
        Vegans swear by chickpea water instead of egg white.
        My aunt's plum cake needs no sugar, only ripe fruit and patience.""")),
    "weather": (words("the forecast, climate"), "rain, wind and temperature", lines("""
        Fog in the valleys will lift by noon, with sunshine later.
        The storm tore roofs off and left the coast without power.
        Expect frost tonight and icy roads in the morning.
        No rain for six weeks: the reservoirs are half empty.
        Temperatures climb to 34 degrees on Thursday.
        Snow is falling down to 400 metres.
        A warm front brings drizzle from the west.
        Gusts of up to 110 kilometres an hour are forecast.
        The heat breaks tonight with thunder in the south.
        Clouds will thin out from the coast, it stays breezy.
        It has not been this cold in April since records began.
        Hail the size of plums smashed greenhouses on Tuesday.
        Tomorrow starts grey and ends blue.
        A tropical night again: the mercury did not fall below 22.
        The hurricane weakened to a storm over land.
        Black ice is likely on bridges before sunrise.
        The first half of the week brings showers, the second a dry wind.
        Pollen and dust from the Sahara turned the sky yellow.
        Humidity makes the 29 degrees feel like 36.
        After the snowfall, skies clear and the wind turns to the north.""")),
    "education": (words("school, teaching"), "schools, students and learning", lines("""
        Pupils will learn a second language from third grade.
        The university waives fees for nursing students.
        Teachers say that the new exam leaves no time for reading.
        The village school has eleven children and one classroom.
        Homework helps little before the age of ten, researchers claim.
        She tutors maths after lessons in the library.
        The degree takes three years, with a term abroad.
        Parents may now choose the kindergarten freely.
        From autumn on, mobile phones have to stay in lockers during lessons.
        The faculty wants to replace lectures with small groups.
        Forty first-graders, one teacher, no assistant: parents protest.
        Apprentices get an extra year to finish their certificate.
        Reading aloud every evening doubles a child's vocabulary, says the headmistress.
        The entrance exam for the conservatory takes two days.
        Evening classes in algebra are booked out.
        A retired engineer shows teenagers how to solve equations.
        Marks will be replaced by written reports up to year four.
        The scholarship made it possible for her to study law in Cape Town.
        Pupils built the bookshelf for their classroom themselves.
        The college offers a distance course in bookkeeping.""")),
    "environment": (words("nature, ecology"), "nature and its protection", lines("""
        Volunteers pulled two tonnes of plastic from the river.
        Wolves have returned to the forest after a century.
        The reef lost half of its corals in ten years.
        The town plants a tree for every newborn.
        Beavers built a dam and stopped the flood.
        The factory must filter its waste water from July.
        Fewer insects stick to windscreens than thirty years ago.
        Farmers leave strips of wild flowers for bees.
        Since the dam was removed, salmon swim up to the old spawning grounds.
        The oil spill has reached the marsh where cranes breed.
        Each felled oak has to be replaced by three young ones.
        A night without street lamps helps moths, the council found.
        The last hectare of the rainforest reserve was sold to loggers.
        Sewage turned the bay green and killed its mussels.
        Rangers counted nine lynx cubs this spring.
        Single-use cups disappear from the campus to cut waste.
        The moor stores more carbon than the whole forest around it.
        Residents fight for the hedges in which the sparrows nest.
        The glacier has lost a third of its mass, and the stream below runs dry.
        A fence of nets keeps toads off the road during migration.""")),
    "crime": (words("police news, law and order"), "crimes, police and courts", lines("""
        Thieves emptied the jeweller's safe through a tunnel.
        The jury found the nurse not guilty.
        Police arrested a man who had sold forged tickets.
        The witness recognised the driver in court.
        A gang stole bicycles in three towns.
        The judge sent the fraudster to prison for six years.
        Officers found the stolen painting under a bed.
        Someone broke into the pharmacy last night.
        Customs officers found nine kilos of cocaine in a load of bananas.
        The suspect fled on foot and left his mask behind.
        A clerk confessed to having pocketed the fines for years.
        The court doubled the sentence on appeal.
        Two masked men held up a petrol station with a toy gun.
        The missing girl's phone was found in the river, detectives said.
        Burglars came through the skylight and took only the stamps.
        Her ex-husband was charged with arson.
        Police warn of callers who pose as officers and ask for jewellery.
        The hacker pleaded guilty to blackmailing a hospital.
        Jurors heard the recording of the emergency call.
        A patrol stopped the stolen van after a chase of forty kilometres.""")),
}

INTENTS = {
    "billing": (words("payments, invoice question"), "invoices, charges and payment", lines("""
        There are two identical charges on my card from the 3rd.
        My invoice says 59 but the website said 49.
        Can I pay by bank transfer instead of card?
        The discount code was accepted, yet I paid the full price.
        What is this 4.99 service fee on my statement?
        Please put our tax number on the invoice.
        My payment bounced although there is money in the account.
        You billed me for three seats and we are only two people.
        Why did the price go up this month?
        I need last year's receipts for my accountant.""")),
    "technical": (words("technical problem, bug report, something broken"), "errors, crashes and faults",
        lines("""
        Since Tuesday the page stays white after I press save.
        The app closes by itself whenever I rotate the phone.
        Error 503 each time I upload a picture.
        The sound stops after ten minutes of a call.
        Export gives me an empty file.
        Notifications arrive three hours late.
        The printer shows offline although it is connected.
        Search returns nothing, even for words that are there.
        After the update my calendar shows everything twice.
        The video stutters on a fast line.""")),
    "delivery": (words("shipping, where is my order"), "parcels and shipping", lines("""
        The tracking page has said out for delivery for four days.
        My parcel was left with a neighbour I do not know.
        Can you send it to my office instead?
        Only one of the two boxes came.
        It says delivered, but there is nothing here.
        How long does shipping to Norway take?
        The courier rang, I ran down, he was gone.
        I'd like to pick it up at the depot myself.
        The lamp arrived in pieces.
        Will my order be here before the weekend?""")),
    "account access": (words("login problem, account"), "login, password and locked accounts", lines("""
        It says my password is wrong, but I have just changed it.
        The code by text message never reaches me.
        I lost my phone and with it the authenticator.
        My account has been locked since this morning.
        The reset link has expired, again.
        I no longer have the email address I signed up with.
        Someone from another country got into my profile.
        How do I sign in on a second device?
        The site does not recognise my user name.
        It keeps logging me out after each click.""")),
    "cancel": (words("cancellation, end the contract"), "ending a subscription or an order", lines("""
        I want to end my subscription at the end of the month.
        Please stop the renewal, I don't use it any more.
        I ordered by mistake, please call it off.
        How do I get out of the yearly plan?
        Close my contract, I am moving abroad.
        Don't send the next box, I am done with it.
        I'd like to terminate my membership.
        Where is the button to quit the plan?
        Take me off the programme from June.
        Please confirm that my subscription stops today.""")),
    "refund": (words("money back, return"), "getting money back", lines("""
        The shoes are too small, I'd like my money back.
        I sent the coat back two weeks ago and still have not been repaid.
        The concert was called off, how do I get my money?
        I was promised a refund by phone and nothing came.
        Can I return an opened box?
        Please reimburse me for the broken vase.
        Where do I print a return label?
        I'd rather have the money than a voucher.
        The course never took place. Kindly transfer the fee back to my account.
        I returned one of the two lamps, when will I see the 39 on my card?
        This jumper has a hole under the arm, I want to give it back.
        Your shop took the parcel back but paid me five less than I'd spent.
        Can the unused half of my day tickets be paid out?
        Flight dropped by you, so please give me the fare and not a credit note.
        I've changed my mind about the sofa. What do I have to do to send it back and get paid?
        It has been a month since the return, where is my money?
        Do I have to pay the postage if I return the toaster?
        The keg went back to you on Monday. May I have my deposit?
        The toy was recalled. Do I get the price back without a receipt?
        I paid for express and it took a week, please repay the surcharge.""")),
    "change booking": (words("reschedule, change of date"), "moving an appointment or a booking", lines("""
        Can we move the appointment from Monday to Thursday?
        I need to change the name on the ticket.
        We will arrive a day later than booked.
        Please add a second guest to our room.
        Is a later train possible with the same ticket?
        I'd like a table at eight instead of seven.
        Could the plumber come in the morning rather than at four?
        We are five now, not four.
        Something came up, can I come at the same time next week?
        Please shift our cooking class from the 8th to the 15th.
        Could I swap my aisle seat for one by the window?
        The meeting room is booked for ten to eleven, we'd need it until noon.
        I would like to stay one night longer, until Sunday.
        Would an earlier slot be free for the tyre change?
        Instead of the twin room we'd take a double.
        We shall be on the evening ferry rather than the morning one.
        Put our wine tasting off till after Easter, please.
        My fitting is at three, I can only be there at half past.
        Can you transfer my ticket to my sister's name, she goes in my place.
        The tour on Friday has to be moved, half of the class is ill.""")),
    "product question": (words("question about a product, information"), "features, sizes and stock",
        lines("""
        Does the tent fit three adults?
        Is the blue one coming back in stock?
        What is the difference between the basic and the pro model?
        Can the pan go in the oven?
        Which size should I take if I am between M and L?
        Does it work without an internet connection?
        How heavy is the folding bike?
        Is there milk in the chocolate?
        How many pages does the refill have?
        Is this paint all right for a child's room?
        Do the speakers connect to an old record player?
        Will the cover fit the 2019 version of your grill?
        What's the thread made of, cotton or polyester?
        Can I wash the rucksack at thirty degrees?
        Are spare blades sold separately?
        How loud is the dishwasher in decibels?
        Does the oak table come in a length of two metres?
        I have a cat, is that plant poisonous to her?
        Up to what temperature does the sleeping bag keep warm?
        Has the watch got a sapphire glass?""")),
    "complaint": (words("unhappy customer"), "anger about staff or service", lines("""
        Your driver shouted at my mother. I expect an apology.
        I have written five times and nobody has answered.
        The waiter laughed at us when we asked for water.
        This is the worst support I have ever dealt with.
        I was promised a call back on Friday. It is Wednesday.
        The fitter left mud on every carpet.
        Your colleague hung up on me.
        The room was dirty and the desk did not care.
        Twice I took a day off for your fitter, twice nobody came.
        The lady on the phone was so rude that I was lost for words.
        I feel made a fool of by your shop.
        We had to listen to building noise at six in the morning, and no one had warned us.
        Is this how you treat people who have been with you for ten years?
        The cook touched the bread with the hand he had just sneezed into.
        Your new counter is a disgrace: one clerk for forty people.
        I have seldom been talked down to like that by a salesman.
        The promise of 'personal care' turned out to be a machine that misunderstands me.
        Nobody at your branch thought it necessary to help my father up the steps.
        Your answer was a copied text that had nothing to do with my letter.
        The bus driver saw me, grinned and drove off.""")),
    "praise": (words("compliment, thanks"), "thanks and kind words", lines("""
        Just wanted to say thank you to the lady at the desk.
        Great job by your team, the kitchen looks superb.
        Your driver found my wallet and brought it back, bless him.
        The manual is a joy to read, well done.
        Everything arrived early and in perfect shape, thanks!
        Kudos to Rita, who stayed late to help me.
        I'm a happy customer and will tell my friends.
        Thanks for the quick fix yesterday.
        My compliments to whoever packed the china, not a chip.
        What a kind voice you have on your hotline, it made my morning.
        The trainer had patience with all of us, please tell her.
        You saved our wedding with those spare chairs. Thank you so much!
        I've seldom been looked after so well in a hospital.
        Your bread is a reason to get up early.
        Hats off, the repair took twenty minutes and cost nothing.
        The new website is a pleasure, even I at 78 find everything.
        Please pass on our thanks to the night porter for the tea.
        Such careful movers, I'd book them again at once.
        Lovely shop, lovely people, and the dog got a biscuit.
        Chapeau for the quick and honest answer.""")),
    "job application": (words("application, careers"), "asking for work", lines("""
        Are you looking for a night porter?
        Attached is my CV for the position of cook.
        I'd like to do an internship with you in summer.
        Is the vacancy in the warehouse still open?
        When will applicants hear from you?
        I am a trained welder and would love to join your team.
        I have driven lorries for twenty years, could you use somebody like me?
        To whom should I send my application documents?
        Do you take on trainees in the bakery?
        I saw the notice in your window and would like to work as a waitress.
        My notice period is four weeks, I could begin in May.
        Does your firm hire people without a degree?
        I enclose my certificates and two references.
        Would it be possible to spend a trial day in the workshop?
        With this letter I apply for the post of caretaker.
        I'm fluent in Arabic and Dutch and am looking for an office job.
        Are there openings for students on Saturdays?
        Please keep my CV in case something in accounting comes up.
        What is the pay for the assistant's position you advertised?
        I graduate in June and would be keen to start as a junior designer with you.""")),
}

SPAM = {
    True: lines("""
        Your parcel is held at customs. Pay 1.99 now via this link or it goes back.
        WINNER!! Your number was drawn. Call 0900 today to collect 5,000 in cash.
        Dear customer, your mailbox is full, confirm your password here to keep it.
        Grow your followers overnight, only 9 dollars for 10k likes.
        I am a widow with 8 million to give away and need your account number.
        Doctors hate this trick: lose 12 kilos in 12 days.
        Last chance! Replica watches, 85 % off, free shipping.
        Your bank card is blocked. Log in at secure-bank-check.example to unlock it.
        Hot singles in your area want to chat tonight.
        Earn 400 a day from your sofa, no skills needed, spots are filling fast.
        Mum, I broke my phone, this is my new number, can you send 900 quickly?
        Your computer has 5 viruses, call our certified support now.
        Crypto robot doubles your money in a week, guaranteed. Sign up free.
        Congratulations, you are visitor 1,000,000. Claim your tablet.
        Cheap meds without prescription, discreet delivery worldwide.
        You have an unpaid fine. Settle it within 24 hours by gift card.
        Re: your loan is approved! No credit check, just reply YES.
        Final reminder: renew your domain through us or lose it today.
        Free casino spins waiting for you, no deposit needed, tap here.
        The tax office owes you 612.40. Enter your card details for the refund.
        You've been chosen for a secret shopper job, send us your ID and 50 for the starter kit.
        Unlock the miracle cream that celebrities use, trial ends at midnight.
        We have recorded you through your camera. Pay in bitcoin or we share it.
        Investment opportunity!!! 300 % return, limited places, act now.
        Hi, I visited your site and noticed that it does not rank for its main keywords. We can put you on page one in 60 days. Shall I send a proposal?
        Your Netstream membership could not be renewed. Update your payment details within 48 hours at netstream-billing.example to avoid suspension.
        Good day, I am Barrister Collins. A client with your surname died without heirs and left 14.2 million dollars. Kindly reply for your 40 percent.
        u have (1) package waiting. reschedule fee 0.99 >> trk-parcel.example/a8x
        Hello dear, I saw your profile and felt something special. I am a soldier on mission and would like to write to you privately.
        Our overstock must go: sofas, beds and carpets at 70 % off, this weekend only. To stop receiving these messages click unsubscribe.
        Dear Sir, we are a leading manufacturer of injection moulds in Shenzhen with best price and quality. Looking forward to your kind inquiry.
        Your invoice no. 88213 is attached as .zip. Please enable macros to view the amount due.
        I made 3,200 last week working two hours a day and my mentor is taking five more students. DM me "READY".
        We noticed an unusual sign in to your account from Lagos. If this was not you, verify your identity and card number here: acc-verify.example
        Hey it's Jenna from the agency. We have a remote job for you, 35 to 90 an hour, just liking videos. Add me on Telegram for the details.
        This is your final notice regarding your car's extended warranty. Press 1 to speak to an agent.
        Are you tired of back pain? Thousands threw away their pills after this 10 second stretch that surgeons want banned.
        Only 3 seats left in our free masterclass: how I retired at 34 with rental flats I never bought. Save my seat!
        Token presale ends tonight. Early wallets of the last round made 40x. Connect your wallet to claim the airdrop.
        Dear beneficiary, the United Fund has approved your compensation of USD 2,500,000. Send full name, address and a copy of your passport.
        Great post! I also write about this at best-slim-tea.example, check it out guys
        Your cloud storage is 99% full and your photos will be deleted. Get 50 GB for a one time payment of 1.95.
        URGENT from the CEO: I'm in a meeting and need you to buy six gift cards for a client. Scratch them and send me the codes. Keep this between us.
        We offer genuine diplomas and driving licences, registered in the database, no exam needed. WhatsApp only.
        Dear account holder, due to new regulations all customers must re-register their online banking. Failure to comply leads to closure of your account.
        Lonely tonight? Girls from your town uploaded private pics. 18+ only, enter free.
        Boost your domain authority with 500 high quality backlinks for just 49. Order today and get 100 more on top.
        You were selected among ten lucky shoppers of Foodland. Answer three questions and receive a 500 voucher.
        Sir/Madam, kindly find attached the new purchase order. Open the document with your e-mail password to see the specification.
        Reminder: you have still not claimed your 250 free spins. Bonus code LUCKY expires at midnight.
        I represent a private lender. Loans from 5,000 to 5 million at 2 percent, bad credit welcome, money in your account in one day.
        Our records show you were in an accident that wasn't your fault. You may be owed up to 4,750. Reply CLAIM or STOP.
        Looking for cheap leads? We sell 2 million verified company e-mail addresses, sorted by country, for 199.
        Hi, how have you been? This is Amy, we met at the wine fair. No? Oh sorry, wrong number. You seem kind though, what do you do?
        Your device is infected!! Do not close this window. Download CleanMaster Pro to remove 13 threats.
        Limited offer for homeowners in your postcode: the government pays your new solar roof. Check eligibility before the programme closes.
        My uncle works inside an exchange and told me which coin goes up on Friday. Join the group, only 20 places.
        As a valued reader you get our gold plan at half price. This exclusive deal will not come again. Order now, pay later, cancel never!
        PAYMNT DECLINED for your mobile plan. to keep ur number visit mob1le-pay.example
        We would like to invite you to submit a paper to our international journal of all sciences. Publication within 72 hours, fee only 150.
        Buy real followers, views and comments, instant start, refill guarantee, cheapest panel on the net.
        Congratulation! Your e-mail address won the second category of the Euro Online Lottery. Contact the fiduciary agent Mr. Peterson.
        Tax rebate pending: 318.77. Complete the form with your sort code and security answers before 5 pm.
        An admirer has left you a secret message. Subscribe for 2.50 a week to read it.
        You don't know me, but I know your password. Transfer 900 in bitcoin and your secret stays safe.
        Our team of experts can redesign your website at an affordable price. We have 12 years of experience. May we share our portfolio?
        Turn 250 into 11,000 with the trading app that the banks tried to forbid, as seen on TV.
        Dear friend, I am dying of cancer and wish to leave my fortune to a God fearing person. Please do not ignore this mail.
        Last call! Our biggest sale of the year ends in three hours. 60 % off everything with CODE60. View in browser. Unsubscribe.
        Your friend Daniel has sent you a video, is this you?? vid-look.example/you
        We are hiring parcel agents: receive packages at home, relabel and forward them. 2,800 a month, no interview.
        The pension office informs you that a change of address is required. Please confirm your card PIN by return e-mail.
        One weird vegetable melts belly fat while you sleep. Watch before they take it down.
        Electricity board: your power will be cut tonight at 9.30 because the last bill was not updated. Call officer Sharma on this mobile number.
        Amazing deal on printer ink, toner and paper. Bulk buyers save even more. Reply with REMOVE if you do not wish to hear from us again.
        Hey bro, this new casino pays insane, i cashed out 6k yesterday, use my link and we both get 100
        Your subscription to AntiVirus 360 has been renewed for 399.99. If you did not authorise this, call 1-800-555-0137 for a refund.
        Meet the wealthy investor who is giving away 5,000 coins. Send 0.1 and receive 0.2 back straight away.
        No prescription? No problem. Blue pills from 0.80 apiece, plain box, ships in a day.
        Dear Webmaster, I found 27 critical errors on your homepage that cost you customers. Can I have your phone number for a free audit?
        Your apple-ID has been locked for securty reason. Restore acces now or it will be permanantly deleted.
        We just missed you! Schedule your delivery by entering a card for the 2.99 redelivery charge.
        Do you own a business? Get up to 250k in funding by tomorrow, no collateral, apply in two minutes. Txt STOP to opt out.
        Hello, I am a recruiter at a global company. Your CV impressed us. To proceed please pay a refundable 75 for the background check.
        The secret stones of Tibet attract money and love. Order your bracelet, first one free, only shipping.
        Hurry!! Concert tickets at half price, sold by fan, only bank transfer, no questions asked, write to vip.tix
        Dad it's me, I'm using a friend's phone because mine fell in the toilet. I have to pay a bill today, could you transfer it for me?
        This stock is about to explode. Our last pick went up 812 percent. Read the free report before the market opens.
        Court notice: you are ordered to appear on the 12th. Open the attached file for details of the case against you.
        Increase your sales with our SMS blasts. 100,000 numbers for 300. Test it free, no contract.
        Thank you for your comment. By the way, I lost 20 kg with keto drops, link in my bio if anybody is interested.
        Dear user, we will shut down your webmail as it is outdated. Click UPGRADE and log in with your user name and password.
        Because you are special to us: 5 perfumes for the price of 1. Not interested? You may opt out at the bottom of this mail.
        Fast cash for your house. Any condition, any area, we close in seven days. Is 14 Elm Road still yours and would you sell?
        Your Insta account violates our copyright rules and will be removed in 24 hours. Appeal with your login here.
        I can hack any phone, recover lost crypto and erase debts. Serious people only, contact cyberwizard at protonbox.example
        Act fast: our psychic has seen a great change in your life on Thursday. The reading costs just 9.90.
        URGENT: toll unpaid. Settle 6.45 at road-toll-pay.example to avoid a penalty of 75
        Dear CEO, our virtual assistants from 4 dollars an hour can do data entry, calls and design. Would Tuesday suit you for a short call?
        Luxury handbags, mirror quality, nobody will notice. Three for 199, worldwide dispatch.
        You are pre-selected for the Platinum credit card with a limit of 20,000, no income proof. Offer valid till Sunday. T&C apply.
        We have been trying to reach you. There is an inheritance in your name and our office needs a processing fee of 480 to release it.
        Cute puppies need a new home, free, you only pay the transport company 350 in advance.
        Make him addicted to you with these 3 words. Women only. Click to listen.
        Good afternoon. Could you tell me who is in charge of purchasing in your firm? We supply nitrile gloves at the lowest price in the market.
        System alert: your mailbox storage has reached 95 %. Re-validate your account below, else incoming mails will be rejected.
        FLASH SALE FLASH SALE sunglasses 19.99!!! tell 10 friends and get yours free
        Dear parents, buy essays and homework for your child, any subject, plagiarism free, 20% for new customers.
        Your refund of 89.00 from ParcelPost could not be processed. Please choose your bank and sign in to receive it.
        What would you do with an extra 1,500 a month? My team is growing, no boss, no selling to friends, just a small starter package.
        Quit smoking in one session of audio hypnosis. Normally 120, today 17. The timer is running.
        Hello. I bought the rights to a photo which appears on your website. Pay the licence of 650 within five days, link below, or face our lawyers.
        Claim your free sample box of vitamins, just cover 4.95 postage. A monthly plan starts after 14 days.
        Mobile network: you have earned 4,820 points which expire today. Redeem for a headset at points-mall.example
        This message is for those who want financial freedom by Christmas. Everyone else can delete it.
        Attention: your IP address was found in a criminal investigation. Reply within 24 hours or you will be arrested. Europol director.
        Kindly confirm if you received my former mail about the business proposal of 18.5M. It is 100% risk free.
        Want to know who viewed your profile? Install this plug-in and see everyone, lol it really works
        Our company needs agents in Europe to receive payments from clients. You keep 8 percent of every transfer and send on the rest.
        Re: Re: your quotation. Sorry for late reply, please see the price list in the linked folder and sign in with your office account.
        Spring special for members of your industry only. Our CRM now at 3 per user, and this week we waive the set-up. Book a demo. Update preferences or unsubscribe.
        Do you know that 9 of 10 shops lose sales because of slow pages? Reply "yes" and our expert calls you in ten minutes.
        Watch the full match free HD no sign up >>> sport-live4u.example <<< works 100%
        Win a holiday for two in the Maldives! Just text SUN to 66099, 3 per message.
        Your bank has introduced a new safe account. An adviser will ring you and help to move your savings there today.
        Someone has a crush on you. Find out who, 100 % anonymous, installs in seconds.
        To the owner of the domain: the Asian branch of your brand is being registered by another firm. Please answer urgently if you object.
        Learn the trick that dealers do not want you to know and drive a new car for 99 a month. Sponsored.
        hello sir i am expert in logo, video edit, wordpress, very low rate, plz give me one chanse
        You won't believe what this actress looks like now. Doctors are speechless. Tap to see picture 7.
        Your vehicle was photographed by a speed camera. View the evidence photo and pay within 2 days for 50 % off.
        Holiday apartments from 9 a night, prepay by transfer for an extra discount, owner lives abroad and sends the keys by post.
        Double your deposit up to 1,000. Bet on tonight's derby and even losers get their stake back.
        We guarantee first place on search engines or you get your money back. Hundreds of dentists already trust us.
        Dear winner, to deliver your new phone we only need a photo of both sides of your credit card.
        Remember us? You looked at our mattress once. It misses you. 55 % off till midnight, 56 % if you bring a friend. No more mails? Unsubscribe here.
        Genuine military gold for sale by trusted family, 22 carat, price half of market, buyer must visit with deposit.
        Hi neighbour! I started selling a nutrition shake that changed my life and I'd love to tell you about this opportunity over coffee. You can be your own boss too.
        Your account has been credited with 0.84 BTC. Log in to the platform and pay the 2 % release tax in order to withdraw.
        Reply to this survey about your supermarket and get a free air fryer, we only ask for the postage and your card data.
        Is your family protected? Life insurance for less than a coffee a day. Agents waiting. This is an advertisement, to be removed write to the address below.
        Your employer's HR has shared the file "salary increase list" with you. Sign in with your company password to open it.
        I'm giving away my late husband's piano to any music lover. You just have to pay the movers beforehand, contact their office here.
        Grow 3 inches taller in a month with our natural capsules, doctors confirm, buy 2 get 3.
        Every entrepreneur needs a book. We write it, you sign it. Packages from 999, and our spring discount closes Friday. Shall I ring you?
        Meta Support: page will be unpublished. Click the button to submit your statement and two factor code.
        Emergency: your grandson has been in an accident and is under arrest. A courier will come to collect the bail in cash. Tell nobody.
        Your friend has gifted you a share in a gold mine. To accept the gift, cover the notary's stamp of 39 by prepaid card.
        Hello, we have a buyer for your timeshare. All that is needed beforehand is the transfer tax, which he pays back at signing.
        Make your colleagues jealous: a tan in three days without any sun. This weekend two tubes for one, don't miss out."""),
    False: lines("""
        Running ten minutes late, order me a coffee please.
        The minutes of Tuesday's meeting are in the shared folder.
        Your appointment with Dr. Malik is on 4 May at 9:15.
        Did you turn the oven off?
        Here is the invoice for the chairs, as agreed on the phone.
        Grandad is out of hospital and sends his love.
        Your library loans are due in three days.
        Can you cover my shift on Sunday? I'll take yours next week.
        The lift will be out of order from eight to noon.
        I have pushed the fix, could you review it before lunch?
        Happy anniversary to you both!
        Thanks for your order. We will write again when it has been sent.
        School closes at twelve tomorrow because of the heat.
        The landlord will read the meters on Friday morning.
        Shall we share a taxi to the airport?
        Please bring the signed form to the first lesson.
        I won't make it to training tonight, my knee is sore.
        Here are the photos from the hike, the third one is my favourite.
        Your password was changed on Monday as you asked. If it was not you, call the helpdesk.
        The book you reserved has arrived at our shop.
        Draft attached. I am not sure about the last paragraph, what do you think?
        The free concert in the park starts at six, want to come?
        Payday is moved to the 28th because of the holiday.
        We won! Two to one, and your nephew scored.
        Your one-time code is 482913. It is valid for ten minutes. Never share it with anyone, our staff will not ask for it.
        Your statement for October is ready. Log in to online banking in the usual way to view it. We never send links to the login page.
        We have blocked a payment of 312.00 at an unknown shop on your card ending in 4471. Call the number on the back of your card if it was you.
        Parcel 00340 will be delivered tomorrow between 10 and 12. You can choose a drop-off place in the app.
        Thank you for your payment of 48.20. Your receipt no. 5512 is attached for your records.
        Hi Mum, could you lend me 60 until Friday? The garage wanted more than I thought for the brakes. See you Sunday, Nina
        OMG OMG OMG I GOT THE JOB!!! Drinks on me tonight, I'm serious!!!
        As a club member you get ten percent off new rackets until the end of the month. Just say your name at the counter of our shop.
        Reminder: dentist, Thursday 14:30, Dr. Weber's practice. Please call if you cannot come.
        The supplier's offer came in at 14,200, which is about two thousand less than last year. Shall we accept?
        Here's the link to the slides I promised: intranet/sales/q3. Skip to page 9 for the prize money question.
        You asked us to tell you when the walnut shelf is back. It is, and we set one aside for you till Saturday.
        Your prescription is ready for collection. Please bring your health card.
        Issue 31 of our beekeepers' letter: swarming season, a new honey press, and the date of the summer meeting.
        The premium of your household insurance goes up to 143 a year from January. You can end the contract within a month.
        Guess what, I won 50 in the raffle at the fair! First time ever.
        A new device signed in to your account: Firefox on Linux, Utrecht. If this was you, there is nothing to do.
        Payment reminder: invoice 2093 for the roof repair of 2 June, 1,180.00, is still open. If you have paid in the meantime, please ignore this letter.
        Could you transfer your part of the rent today? Landlord moans already. Same account as always.
        Dear parents, the class trip costs 35 per child. Please hand the money to Mrs Olsen in an envelope by Wednesday.
        HAPPY BIRTHDAY you old rascal!!!!! 40 and still no grey hair, how???
        Attached you find our quotation for the two oak doors you asked about, including fitting. It is valid for thirty days.
        We have received your order 7719: two cotton shirts, one belt. Total 84.50. You will get another mail when it leaves our warehouse.
        Your flight to Oslo is now boarding at gate B14.
        The results of your blood test are in. Nothing alarming, but please ring the surgery for an appointment next week.
        Free pizza in the kitchen, Marta is leaving us for real this time. Come quick before IT eats it all
        The prize for the best poster goes to Yuki from 7b. She gets a book voucher at assembly on Friday.
        We are changing our terms of use on 1 March. You need not do anything. The main changes are listed below.
        Did you see the offer they made for our flat? 20k under asking, cheeky!
        I have approved your expenses for Lisbon, the money should be with you on payday.
        Your train 14:02 to Ghent is delayed by about 25 minutes because of a signal fault.
        Someone asked to reset the password of your forum account. If you did not do this, simply ignore this e-mail.
        Ticket 3391 closed: the printer on floor 2 works again. Write back if the trouble returns.
        Sis, can you send grandma's bank details again? I want to pay for her new glasses and lost the note.
        Your bid of 41 was the highest. Please pay the seller within four days and agree on a pick-up time.
        Limited places! Our choir trip to Prague has room for only 12 more singers, so tell Beth soon whether you and Tom are coming.
        The winners of our staff photo contest hang in the canteen from today. Congratulations to Dmitri for first place!
        We noticed that your direct debit failed on the 3rd. We will try again on the 10th, so please make sure that there is enough in the account.
        Your tax assessment for last year is available in the citizens' portal. You will get a refund of 96.10 to the account we already know.
        You booked a table for four on Saturday, 19:30. If you need to cancel, use the link in your booking or phone us.
        I clicked that phishing test from security, so now I have to do the training. Don't click the gift card one!
        Bank holiday notice: our branch on Hill Street stays closed on Monday. Cash machines work as usual.
        Would you like to go halves on a lottery ticket like every Christmas? I put you down for 5.
        hey did u get the 20 i sent for the petrol? app says pending
        Your subscription to Garden Monthly ends with the next issue. If you enjoy it, the renewal card is inside, otherwise you need do nothing.
        The reviewer asks for a second experiment. Deadline for the revised paper is 15 May, shall we split the work?
        Code review done. Two links in the readme are dead and the price table is out of date, otherwise good to merge.
        Our allotment society sells surplus seedlings on Saturday, tomatoes 1 each, courgettes free. Members first, from nine.
        WE'RE ENGAGED!!! He asked me on the ferry and I nearly fell overboard!
        Please confirm the appointment for your boiler service by answering YES. If the time does not suit, answer NO and we will ring you.
        You left your umbrella at our practice. It is at the desk.
        Salary slips for March are in your locker. Overtime is paid with the April run.
        The funeral is on Tuesday at eleven. In place of flowers the family asks for gifts to the hospice. Account details are on the card.
        New in the town library's letter you subscribed to: a reading by Ann Osei, story time on Saturdays, and longer hours.
        Your voucher from the birthday list: 30 at the climbing hall, given by Aunt Rosa. Show this mail at the entrance.
        Water will be turned off in Mill Lane 4 to 18 on Wednesday from eight until about one. Sorry for the bother.
        Can you pick up my parcel at the post office, customs fee is 12, I'll give it to you tonight
        Our bank wants both signatures before it releases the loan for the barn. Could you come by on Monday?
        Your reading of 4,512 kWh has been saved. The next bill comes in November.
        Congratulations on passing your diploma! The ceremony takes place on 30 June in the great hall, and you may bring two guests.
        We have cancelled your order as you wished and paid back 29.90 to your card. It can take up to five working days.
        The shares I told you about fell again, so don't take investment tips from me, haha.
        Sale of old office chairs to staff: 10 each, first come first served, ask Leila in facilities.
        Your vaccination is due. You can make an appointment at the practice, by phone or at the desk.
        I found a cheap flight for 49, but it leaves at 5 am. Still interested?
        Hi, this is the locksmith, I'm standing in front of number 12, nobody opens. Which bell is it?
        Your mailbox at work moves to the new server tonight. Nothing changes for you, and you will not be asked for your password.
        Warning from the bank: fraudsters are sending text messages in our name at the moment. Do not enter your data on linked pages.
        Kickoff with the crypto client moved to 3 pm, same room. Please bring the contract draft.
        Your parcel could not be delivered because nobody was at home. It waits at the branch in Park Road until the 21st. Bring your ID.
        Three cheers for the treasurer: the cake stall made 412.60 for the new swings!
        The warranty for your washing machine has been registered under your name. Keep this letter with the receipt.
        Good morning everyone, the link for the parents' evening is the same as last time, we start at 19:00 sharp.
        Please find enclosed the annual statement of the owners' association. You have to pay 215 extra, due on 1 August.
        Act 2 rehearsal moved to the gym!!! Tell the others, and bring water!
        Your refund for the cancelled train, 18.40, has been sent to the card you paid with.
        Can you look over my loan application before I send it to the credit union? I'm unsure about section 3.
        The doctor's letter says weight loss of five kilos would help his knees. He has started swimming.
        Your car passed its test. The next one is due in 24 months. Bill enclosed: 109.
        Boss, the customer offers to pay cash if we come on Saturday. What do I tell him?
        Since you signed up for our recipe mail: this week three soups, one bread and what to do with old apples. You may leave the list at any time.
        Security notice: please change the door code of the bike shed after last week's theft. The new one hangs inside the hall.
        We owe you 7.30 from the last settlement. Shall we set it off against the next bill?
        I sold the old bike online! 120!! The buyer even brought cookies.
        Your library card expires next month. Renew it for free at the desk, or online with your usual login.
        The free trial of the drawing program you started ends on Sunday. If you do nothing it ends by itself and costs nothing.
        Meeting with the casino project's architects at ten, we need the parking figures.
        Your claim 2231 about the broken window has been accepted. We will pay 340 less the excess of 100.
        Urgent: who took the key to the archive? The auditors are standing here.
        Hey, it's Lena with a new number, the old one is dead since I changed provider. You can ask me on our landline if you doubt it :)
        For the colleague's farewell gift we collect 5 each. The tin is with Omar at the desk.
        As agreed at the fair, here is our price list for garden lamps. Call me if you'd like samples, it was nice to meet you and your son.
        Your visa application has been received. Its number is VX-20981. Processing takes about fifteen working days.
        Please verify the addresses on the guest list, I think that two of them are old.
        The hotel confirms: double room, 3 nights, breakfast included, 279 to be paid on arrival. Free cancellation until 4 July.
        Don't forget the special offer at the bakery on the corner, day-old rolls for half, that's our breakfast sorted
        Prize draw of the school fair: ticket numbers 118, 204 and 377. Prizes can be fetched from the office.
        Hello, you viewed the flat in Quay Street with me yesterday. The owner would let it to you at 780. Do you want it?
        Your heating oil will be delivered on Friday morning. Please keep the drive free for the lorry.
        I've shared the folder "wedding budget" with you. Don't faint at the flowers.
        Your student loan: from September you repay 92 a month. A plan of payments is in your account with us.
        Hi team, finance will cut the ad budget by 30 percent. Let's talk about which campaigns to drop.
        A quick reminder that my reference for you has to be sent by Friday, could you mail me the form?
        He just scored AGAIN, I can't breathe, turn on your TV!!!
        The charity you support has received your monthly 15. Thank you. A receipt for the tax office follows in February.
        The repaired phone can be collected. It costs 65, cash or card.
        Here's my bank account for the camping weekend: 45 a head including firewood. Whoever has paid Sven already is fine.
        Your account balance has fallen below the limit of 100 that you set. This notice was sent at your own wish.
        There's a job going at our place, part time in the post room. Thought of your cousin. Ask for Mrs Adeyemi.
        Gym news for members: the sauna is back, spinning starts at 18:15, and you can bring a friend free on Sundays in May.
        The insurance man comes at four to look at the water damage, can you be there?
        Your code for the parcel locker is 7 3 0 2. The parcel stays there for 48 hours.
        Do not reply to that widow mail grandpa, it's a scam. I'll come over tomorrow and help you clean out the inbox.
        Thanks for joining our tasting. The wine you liked costs 11.50 and you can order it from me by simple reply.
        Electricity bill for May to August: 161.22. It will be debited on the 20th as usual.
        We detected unusual traffic on your server at 03:10 and restarted the mail service. Details are in ticket 90 on your customer page.
        Dear members, the annual fee stays at 60. If you pay by standing order there is nothing for you to do.
        lol the dog ate my betting slip, it would have WON
        Your child was not in class this morning and we have no note. Please phone the school office.
        Your driving licence has been printed and can be fetched at counter 6 without an appointment.
        The buyer of the flat pays the deposit into the notary's account on Monday. After that we hand over the keys.
        Job interview on 9 April at 10:00, building C, second floor. Please bring your certificates. We refund your train ticket.
        You have two unread messages from your son's teacher in the school app.
        Hi love, the man from the lottery shop rang, grandad left his wallet there. Can you pick it up on your way?
        Hey Jo, did you really win that tablet at the trade fair? Show me at lunch!
        Two-factor sign in is now on for your work account. From tomorrow you will need the app which IT installed with you."""),
}
