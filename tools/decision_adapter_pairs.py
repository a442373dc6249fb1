"""Own texts with questions, ratings, queries and chat messages for tools/train_decision_adapter.py."""
from default_model_words import lines

# Levels of urgency, lowest first.
URGENCY = [
    lines("""
        Just a thought for some later version: a dark mode would be nice.
        No rush at all, I only wonder whether you sell spare straps.
        Whenever somebody has a spare moment, the logo on page 9 is a bit blurred.
        I noticed a typo on the about page, thought I'd mention it.
        For next year's catalogue you might want a bigger font.
        Could you add me to the newsletter at some point?
        Small wish: let me sort the list by colour some day.
        Not important, but the chair squeaks now and then.
        Feel free to answer after your holidays.
        Is there a museum of your old models? Just curious.
        A minor thing: the button is two shades of green.
        When you happen to pass by, the hall could use new paint.
        It would be lovely if the app could remember my favourite colour theme, but I can live without it.
        Last year we had a fire in the server room. Everything is fine today, I am just writing up the history for our anniversary booklet.
        WHO DESIGNED THIS UGLY LOGO??? It hurts my eyes, but well, it is only a logo.
        I was quite angry about the rude tone in your leaflet and wanted you to know. No reply needed.
        Do you plan to offer the blue mug again one of these years?
        The door of the third cupboard in the meeting room hangs a bit crooked. If somebody is there with a screwdriver anyway, fine.
        For your records: our street was renamed, the postman knows and finds us either way.
        We're thinking of a trip to Norway the summer after next. Which of your catalogues should we get?
        Just to let you know, the ambulance that came on Monday was great. Mother is back home and doing well.
        One of the pictures in the annual report shows the wrong building. The report is already printed, so maybe for the next one.
        hey, random idea: could the bot tell jokes on fridays? lol
        There is a spelling mistake in the German help page, second paragraph.
        I should like to know how your interest rates have developed since 1990, for a school project due at the end of next term.
        The heating works fine again since your man was here. I only want to praise him.
        Somewhere on your shelf is my old lunchbox, keep it or bin it.
        You may take your time with this: which of the two fonts do you like better?
        I HATE the new cover of the magazine. HATE IT. I'll go on reading it of course.
        My library book is not due until autumn, can I still extend it?
        It might be worth tidying the wiki one day, there are three pages on the same subject.
        We have enough toner for the rest of the year. Still, let me know when you have a better price.
        In theory the log could be compressed, it uses two percent of the disk.
        The swing in the yard has lost some paint. It is safe, the children don't mind.
        A year ago our cellar was flooded and I panicked. Since then it has been bone dry, so I am cancelling the pump.
        Please send me your brochure at your leisure.
        I have a question about the family tree on your website, I research as a hobby in the winter months.
        When the roadworks are over, perhaps someone could straighten the sign at the gate.
        Your hold music is a bit dull. How about some jazz?
        Is it true that the old factory had its own railway? My grandson asked me.
        The graph on slide 12 uses two kinds of dash. I know, I'm picky.
        No emergency this time, I promise! I only wanted to ask what brand of coffee you had at the desk.
        If you ever redo the menu, please add a vegetarian soup.
        The second lift makes a funny little ping on floor 4. It amuses us more than it bothers us.
        One day we should rename that variable, it confuses newcomers.
        You asked for comments on the draft policy. Mine are attached, the consultation runs for another five months.
        Thank you, the burst pipe is mended and dry. Could you send a copy of the bill for my files at some point?
        I'm collecting old bus timetables. Should you find any while clearing up, think of me.
        Our old contract ended in spring and everything is settled. Just curious why the name of the company changed.
        It bugs me that the settings page has no search box. Not a deal breaker.
        Would you consider opening a branch in Kent in the coming years?
        Honestly the new uniform is a disgrace and I will say so at the annual meeting next spring.
        There's a dead pixel in the corner of my screen. I forget about it most days.
        Could someone tell me, when convenient, what the little flag icon stands for?
        The rash went away by itself weeks ago. I mention it only so that you can note it in my file.
        The tablecloths could be ironed better. Small thing.
        Let me know your thoughts on the book whenever you've finished it, I don't need it back.
        We might repaint the boat next winter. What would you charge, roughly?
        The plaque on the bench has a wrong year, it should read 1952. It has stood there for twenty years like that.
        Nice to have: export to a spreadsheet. We copy and paste for the time being and it's okay.
        My complaint from March was solved to my satisfaction. I only regret that nobody apologised.
        I'd like to be put on the list for a garden plot. I hear that the wait is about six years.
        In case you are short of topics for the newsletter, I could write about moss.
        The parcel came, thanks. The string around it was rather ugly if I may say so.
        AMAZING FILM! ALL OF YOU SHOULD SEE IT! That was all, carry on.
        The tooltip says "an user". Cosmetic.
        Could we have softer chairs in the waiting room in the long run?
        Remember the great power cut of 2009? I am looking for photos of it for an exhibition.
        If there is a spare hour in the sprint, the footer could use some love.
        My card is valid for three more years, but the photo makes me look like a ghost. Can it be changed at the next renewal?
        Someone left a glove at the stop opposite, I hung it on the fence.
        I'd be curious to learn how many visitors you had last season.""") ,
    lines("""
        I'd be glad to hear from you some time next week.
        Please correct the address before the next bill goes out at the end of the month.
        One of our four printers is jammed, we use the others meanwhile.
        The report is slow since the update, it takes a minute instead of ten seconds.
        Could you send the quote in the coming days?
        The tap drips, we put a bucket under it for now.
        I need the certificate for a meeting next Thursday.
        Two users cannot see the new menu; they can work, though.
        Please order new toner, this one will last until Friday or so.
        The order is a day late, could you have a look?
        My licence expires in ten days, how do I renew it?
        Our heating makes a strange noise, can somebody come this week?
        My internet has dropped twice today for a minute or so. Could a technician look at it this week?
        The invoice is due on the 30th and shows the wrong VAT number, please send a new one before then.
        We need the translated leaflets by Friday of next week.
        The cough has lasted ten days now, no fever. I'd like an appointment in the next few days.
        One of the two ovens in our canteen is out of order. Lunch takes longer but gets done.
        I can't print from my laptop since the update, I send files to Anna and she prints them for me.
        The school asks for the form by Monday. Could you sign it and put it in her bag?
        Our order of paper is three days late. There's stock for another week.
        The brakes of my bike squeal a lot, I'd like to have them checked before the tour in two weeks.
        My bank card expires at the end of this month and the new one has not come yet.
        Some customers get the order confirmation twice. They are a bit puzzled, and support answers about five calls a day.
        Please book the hotel for the fair soon, rooms there are usually gone a month ahead.
        A roof tile came loose in the wind. It doesn't rain in at present, but the forecast for the weekend is wet.
        The backup of last night failed, the one before is good. Have a look in the course of the day or tomorrow, please.
        I am down to the last strip of my blood pressure tablets, that's ten days. Can I have a new prescription?
        Half of the lamps in the underground car park are dark. One still sees enough to drive.
        The client would like our answer by the middle of next week.
        Could you let me know by Thursday whether the hall is free on the 20th?
        Since Monday the report leaves out the Dutch branch. We add the numbers by hand for the weekly meeting.
        The fridge gets louder every day. It still cools, but I'd like someone to see it soon.
        My daughter starts at your school in three weeks and we haven't received the timetable.
        The test environment is down, so the two new colleagues read documentation today.
        Your colleague promised me the contract for last Friday. I am not pleased. Please send it in the next couple of days.
        The rear tyre loses some air and I pump it up every third day. When do you have a free slot?
        A tooth broke off at the edge, it does not hurt but it is sharp. Do you have something this week?
        Reordering the blue thread would be good, it will last for about eight more working days.
        The passport is valid until August and we travel in September, so I ought to apply this month.
        In the new version, managers can't approve holidays. They have been told to do it by mail until the fix is there.
        The tenant in flat 6 says that the bathroom fan is broken. Please arrange a repair with him.
        We are missing the last two receipts for the quarterly return, which is due on the 10th.
        Search is off by one page in the shop. People find things, it just takes them a click more.
        The delivery van needs an oil change in the next 500 kilometres.
        Could we move the review to Wednesday? The figures will not be ready before Tuesday night.
        My internship begins on the first of next month and I still need your signature on the agreement.
        Please replace the battery of the smoke detector in the hall, it started to chirp today.
        The price on the website is higher than on the shelf. Several people have asked, please correct it when you do the weekly update.
        I'd appreciate a call back tomorrow or the day after about my mortgage offer, it stands until month's end.
        Two of the six pumps are being repaired, the others manage as long as it stays dry.
        Our subscription runs out in twelve days. What do I have to do to keep the data?
        She has a slight limp since the weekend, otherwise the dog eats and plays. When could we come by?
        The subtitles are out of step in lesson 4. The course reaches that lesson next week.
        The cleaner is ill, we need a replacement from Wednesday on.
        I got the wrong size, and the wedding is in three weeks. Can you exchange the shoes in time?
        The meter reading has to be with you by the 15th, but your form does not accept five digits.
        Login takes nearly a minute in the mornings. Annoying for everybody, please put it on the list for this week.
        The window in room 12 cannot be shut entirely and nights are getting colder.
        Please remind the suppliers that their certificates end next month.
        We were charged twice for the same night. It would be good to have it back within the usual week.
        The train tickets have to be bought by Sunday to get the cheap rate.
        My glasses have a scratch, I can see with them, but could you order new lenses?
        The visa office needs one more document from us within fourteen days.
        The coffee machine on our floor has given up. Floor 3 shares theirs until you send someone.
        The garden wall leans a bit more since the frost. I would like an expert to judge it before spring.
        The payroll file shows a wrong department for three people. Pay day is in nine days.
        Could you send somebody about the wasps under the roof? They don't come in, but the children play there at the weekend.
        The certificate of our test server runs out in eleven days.
        As the committee meets on Tuesday, I'd be grateful for your comments by Monday noon.
        The rental car has a warning light for washer fluid. Shall I bring it in or fill it up myself?
        Some of the labels peel off in the cold store, about one in fifty. We need a better glue for the next batch.
        I have not had the results of my scan from last week. Could the practice ring me in the next days?"""),
    lines("""
        The whole shop is offline and customers are standing at the till.
        Water is running through the ceiling onto the server rack!
        We cannot ship a single order until this is fixed, please call me now.
        My insulin has not arrived and I have two doses left.
        Somebody is emptying my account at this very moment, block it!
        The lift is stuck between floors with two people in it.
        My flight leaves in an hour and the ticket is not in the app!
        It smells of gas in the stairwell, send someone at once.
        All patient records have vanished and the ward round starts in minutes.
        The site is down in the middle of our launch, we lose thousands every minute.
        Help, the alarm is ringing and the doors won't open.
        I need an answer within the hour or we lose the contract.
        My father has chest pain and his left arm is numb, the ambulance line is busy, what do I do?
        Good evening, I'm sorry to trouble you, but there is smoke coming out of the socket behind the bed.
        The database is deleting rows while I watch and I don't know how to stop it.
        The surgery starts at eight and the blood bags are still in your van. It is 7:40.
        Our toddler has swallowed a button cell. We are in the car, which hospital should we go to?
        All tills in the eleven branches have been dead since opening. The queue goes out into the street.
        I'm locked out on the balcony, it is minus nine and my phone has four percent left.
        Somebody has changed the bank details on the invoices that went out at noon, and the first customers are paying.
        If the signed bid isn't uploaded by 16:00 we're out of the tender, and your portal rejects my password. It's 15:35.
        The cold store has gone up to twelve degrees and there are forty tonnes of fish inside.
        Would you kindly send the lift engineer? There is a pregnant lady inside and she says that the contractions have begun.
        We are at the gate, the doors close in ten minutes, and the desk says our tickets were never paid.
        The customer data are publicly visible, I can open anyone's file without logging in.
        My son should have come home from school four hours ago and nobody has seen him.
        The brakes failed on the way down, I stopped in a hedge. The bus with the children is on the same road behind me.
        A tree lies across both tracks and the 18:12 is due.
        Nobody can log in, neither staff nor customers, and it's the last day for tax returns.
        The patient in room 9 is allergic to penicillin and the drip with it has just been started!
        Water has reached the fuse box in the basement.
        The keynote begins in five minutes, eight hundred people are seated, and the projector does not get a signal.
        Ransom note on every screen in accounting, the files are being encrypted one by one.
        My wife's oxygen bottle is nearly empty and the new one was to come this morning.
        The ward's alarm bells no longer ring at the nurses' desk. We are running from room to room.
        Excuse me, the gentleman at table four cannot breathe, I believe that it's the peanuts.
        I transferred 18,000 to a swindler a quarter of an hour ago. Can you still hold the payment?
        The dog has eaten rat poison and is shaking, we are on our way to you, please have someone ready.
        Baby formula batch 118 has glass in it. It is being sold in the shops as I write.
        The lorry with the chemicals has tipped over and something is flowing towards the stream.
        Exam starts in twenty minutes and the papers in the envelope are those of another subject.
        Checkout has returned errors for all cards since 9:02, today is the biggest sale of our year.
        A crane hook hangs by one bolt over the playground. I've sent the kids in, but please get here.
        She took all of her sleeping pills an hour ago and I can hardly wake her.
        The groom's suit you delivered belongs to someone else. The ceremony is at two, and it is half past twelve.
        The dam gauge shows a rise of thirty centimetres in an hour and the siren does not work.
        My card was swallowed abroad, the hotel throws us out at noon and we have no cash at all.
        There's a man with a knife in the shop.
        The pilot wants to know whether the second engine was checked. They are about to taxi.
        Our web shop sells everything for 0.00 since the update and orders pour in.
        Hi, no wish to stress you, but the board meets in a quarter of an hour and the deck you sent is empty.
        The boiler's pressure is beyond the red mark and the valve is stuck.
        The interpreter has not shown up, the judge gives us until eleven or the hearing is called off.
        I think someone is in my house. I'm in the wardrobe whispering, please come.
        The incubator in the premature ward has lost power and the spare one is in repair.
        Flight crew are stuck in your shuttle on the motorway, 190 passengers are aboard and the slot is lost in 25 minutes.
        Every minute the line stands still costs us four thousand, and it has stood still since six.
        The child has a fever of 41 and her neck is stiff.
        You gave me the wrong keys. The movers stand here with three vans and leave at ten o'clock.
        The scaffold on the north side is swaying, men are still up there.
        Credentials of the admin account were posted on a forum, and we see logins from four countries.
        My asthma spray is empty and I'm wheezing, is any pharmacy near the station open?
        The hot tap can't be shut any more, boiling water is spraying through the kitchen with my mother in it.
        The live broadcast starts at nine sharp, and as of 8:52 we have neither sound nor picture.
        Carbon monoxide alarm is beeping and my husband feels dizzy. Should we leave the flat?
        A horse has run onto the motorway near exit 14.
        The transplant team is waiting for the courier, and the tracking says he is in the wrong city.
        If the court does not get the fax before midnight tonight, my client will be deported.
        Half of the city has no emergency number since the switch was replaced.
        Trading opens in six minutes and our order system shows yesterday's prices.
        I can see flames in the window of number 17, the old couple upstairs is at home.
        You need to recall the driver, he has left the tailgate open and boxes are falling on the road."""),
]
URGENCY_NAMES = [("low", "medium", "high"), ("not urgent", "somewhat urgent", "very urgent"),
                 ("can wait", "this week", "right now"), ("low priority", "normal priority", "high priority"),
                 ("no hurry", "soon", "immediately"), ("minor", "normal", "critical")]
URGENCY_DESCRIPTIONS = ("there is no time pressure", "should be solved in the coming days",
                        "must be solved at once")

# Ratings of one to five stars, worst first.
STARS = [
    lines("""
        It leaked on the first day, the shop refused to help, and now it is in the bin.
        Cold food, dirty forks and a bill for things we never ordered. Never again.
        Do not stay here. Cockroaches in the shower and no refund.
        A fraud. The picture shows leather and you get cardboard.
        The drill smoked, sparked and died within the hour.
        I would give zero stars if I could, a total waste of an evening.
        Broke twice, replaced twice, broke again. Rubbish.
        The dentist hurt me, laughed and charged double.
        Worst customer service of my life, avoid this company.
        The tent tore in the first breeze and we slept in the car.
        Oh great, a waterproof watch that drowned in the sink. Bravo.
        The lid never closes properly and soup ran through my whole bag. Useless.
        Arrived broken, replacement arrived broken too.
        Stopped charging after four days. Seller does not answer.
        If you enjoy waiting ninety minutes for a raw burger, this is your place.
        Stinks of chemicals so badly that I had to put it on the balcony. Sent back.
        We checked out after an hour. There was blood on the pillow.
        The app deleted all my notes with the last update. Years of work, gone.
        I want those two hours of my life back.
        Don't buy. The strap tore on day one and the buckle cut my hand.
        Wonderful, a blender that cannot blend a banana.
        The author has clearly never met a human being. I threw it into the stove after sixty pages.
        Charger got so hot that it melted the table.
        They cancelled our booking at midnight and kept the money.
        Total junk.
        Printer eats every second sheet, ink leaks, support hung up on me.
        Food poisoning for the whole family. Thanks for nothing.
        Worst haircut of my life, I wear a hat now.
        Not one page of the manual matches the machine, and the machine doesn't work anyway.
        The cream gave me a rash and the doctor told me to stop at once.
        Fake reviews, fake leather, fake address.
        Such attentive waiters! They brought the bill before the food, and then no food.
        Ads every ten seconds and it still costs money. Deleted.
        The mattress sagged within a week and my back is worse than ever.
        Kids' toy with sharp wires sticking out. Dangerous, should be forbidden.
        Driver insulted us, drove like a madman and charged triple.
        Nothing about this camera works. Blurry, slow, dead after a week.
        Cold, filthy, loud, and the owner laughed when we complained.
        Congratulations to the makers, you have managed to build an umbrella that lets rain through.
        Never again will I order here. Three months, no goods, no refund.
        Unwatchable. Half the audience left.
        Paid for new, got used, with somebody's hair in it.
        The vacuum cleaner blows the dust out at the back. Straight to the dump.
        The course is read aloud from a free website by a robot voice. A rip-off.
        It burnt my toast, then itself, then nearly the kitchen.
        The glue does not hold anything at all.
        I've had flu that I enjoyed more than this hotel.
        Screen cracked in its box, and they say it's my fault.
        Bank app locked me out on holiday and the hotline is a joke. I've closed my account.
        The stitches came undone in the first wash. Shameful for 80."""),
    lines("""
        It sort of works, but the app is a pain and the battery dies by noon.
        The view is fine, shame about the noise, the stains and the price.
        Expected better for the money. The zip sticks and the colour has faded.
        Slow service and lukewarm soup, although the bread was all right.
        The plot drags, the jokes fall flat, one good song.
        Two of the five lessons were useful, the rest was filler.
        Flimsy handle and a blunt blade. I'll probably return it.
        Staff were polite but the room smelled and the wifi never worked.
        A weak sequel, I looked at my watch a lot.
        Uncomfortable after an hour. Looks nice at least.
        The colour is pretty but the fabric pills after two washes. I wouldn't buy it again.
        Sound is acceptable, the microphone is not. Nobody understands me on calls.
        Battery barely makes it through a morning.
        The steak was tough. At least the chips were good and the waitress smiled.
        Expected more. Bland characters, and the ending is visible from page twenty.
        Room clean, yes, but no window, no hot water in the evening and a disco below.
        The handle wobbles. I use it, but without joy.
        Too small, too stiff, although the leather smells nice.
        Assembly took five hours since half the holes are in the wrong place. It stands now, somewhat crooked.
        Pricey for what it is, and the filter clogs every week.
        The app is pretty but crashes often enough that I went back to paper.
        Delivery was quick. That's the only good thing I can say about this lamp.
        A few decent recipes among a lot of filler and blurry photographs.
        The kettle takes forever and tastes of plastic for the first month.
        Nice idea for a film, badly acted and far too long. One scene made me laugh.
        Not what the picture shows. Wearable at home, perhaps.
        Guide was late and bored, the castle itself was pretty.
        The buttons are stiff and my mother cannot press them.
        It does clean the floor, if you first move all the furniture and then rescue it from the rug every few minutes.
        Customer service did answer in the end, after nine days, with a text that missed my question.
        Thin pillows, thin walls, thin coffee. Good location, I give you that.
        The zip got stuck in the second week. I had hoped for better from this brand.
        Coffee was okay, cake dry, prices cheeky.
        My son played with it for ten minutes and the wheel came off. We glued it.
        Half of the puzzle is fun, the other half is one shade of grey sky, and two pieces were missing.
        The knife needs sharpening after every meal.
        The second album has one catchy tune and eleven that I skip.
        Rather disappointed with the hotel pool, it's a bathtub. Staff tried their best.
        Runs hot and noisy and the lid scratches easily. The keyboard is fine.
        The tutor knows her stuff but was unprepared and cut the lesson short twice.
        I wanted to like these boots. After a rainy walk my socks were damp.
        Weak suction, short cord. Light to carry though.
        The update made a good program slow and confusing.
        Lukewarm pizza again, and the wrong topping again. Driver was friendly.
        The scent is gone within the hour.
        Not the worst phone, but the camera is poor and the screen can't be read in the sun.
        The tent is easy to put up and just as easily let in water at two seams.
        A museum with great pieces, ruined by bad light and no labels. We left early.
        The cable is so short that it's hardly of any use.
        I'd hoped for more help from the gym's coaches, most look at their phones. Machines are worn."""),
    lines("""
        Does what it should, nothing more and nothing less.
        Good food, bad service, so it evens out.
        It's okay for the price. I've had better and I've had worse.
        Some chapters are gripping, others put me to sleep.
        The bed was fine, the breakfast average.
        A decent printer for forms, not for photos.
        Nice idea, mediocre execution.
        Works most of the time. Setup was a bother.
        Neither impressed nor annoyed.
        The first half is great, the second half is not.
        Lovely design, poor battery. I can't make up my mind about it.
        The pan is fine for eggs, and for meat you need another one.
        Cheap and it shows, but it does the job.
        Room large and bright, bathroom old and dark.
        An average thriller. You guess the murderer halfway through and still want to know why.
        The soup was superb, the main dish forgettable.
        Fits well, colour differs from the photo. I keep it because sending back is a hassle.
        Sometimes it connects in a second, sometimes I have to restart everything.
        Good for beginners, too simple for the rest.
        I neither love it nor hate it. It's a toaster.
        Great teacher, awful classroom, so three stars.
        Fast delivery and a dented box. The content was all right.
        The free version is enough for me, the paid one isn't worth it.
        As expected for the money.
        Some songs I play daily, others I skip without fail.
        Strong motor, weak battery.
        The staff were sweet, the beds were hard, the price was fair.
        It's alright. My old one was quieter, this one is faster.
        For a weekend okay, for a week I would choose something else.
        The book has good ideas but could have been an article.
        Warm jacket with useless pockets.
        Works with my phone, not with my wife's. Mixed feelings.
        A middling burger in a nice garden.
        You get what you pay for, no more, no less.
        The sound is rich. The app that belongs to it is a mess. On balance acceptable.
        Medium quality. Will see how long it lasts.
        Beautiful pictures, thin story.
        The cleaning service was thorough once and sloppy once.
        Usable. The instructions are so-so, the hinges okay.
        My kids loved the show, I checked my mail.
        It cuts well but is tiring to hold.
        Breakfast plentiful, dinner meagre, view as promised.
        Decent shoes for the office, not for walking.
        Half a star off for the noise, half for the smell, one for the price, otherwise fine.
        I've used worse translators and better ones.
        The first lamp came broken, the second is nice. Call it a draw.
        Not bad, not special.
        Fun for an evening, then it gathers dust.
        Easy to install, slow to start, stable once it runs.
        The spa was relaxing, the crowd wasn't."""),
    lines("""
        Very nice headphones, only the case feels cheap.
        We enjoyed our stay and would come back, though parking is tight.
        Solid tool, good grip, a bit heavy.
        Tasty pizza and quick delivery, could be a little hotter.
        A warm, funny film that runs ten minutes too long.
        Pleased with it so far. The manual could be clearer.
        Friendly guide and a good tour, just a few too many shops.
        The course helped me a lot, I only missed more exercises.
        Comfortable shoes, they run half a size small.
        Reliable and quiet, the light is slightly too bright.
        The battery lasts two days, only charging takes a while.
        Good value, arrived quickly, instructions in tiny print.
        Really comfortable chair. Took one star off because it creaks at times.
        Happy with these glasses, they just fog up a bit in winter.
        Lovely little hotel with a friendly owner. The stairs are steep for old knees.
        Sharp, well balanced knife. I'd have liked a cover with it.
        A clever crime novel that only loses pace in the middle.
        The filter coffee tastes great, and cleaning is easy. The lid could sit tighter.
        Picture quality is very good for the price, sound is decent.
        We ate well, the wine list is small but chosen with love.
        Nearly perfect backpack, it merely lacks a bottle holder.
        The app does all I need and looks tidy. Syncing could be quicker.
        Warm, soft, washes well. Sleeves a touch long.
        Kind and competent dentist, the waiting time was twenty minutes.
        The film surprised me in a good way, apart from the cheesy final scene.
        Sturdy shelf, went together in half an hour. One screw was missing and I had a spare.
        Soft pillow, good sleep. A little smell at first which went away.
        Recommended for small kitchens. A bit loud, but strong.
        Good hiking map, paper might be thicker.
        The mouse lies well in the hand and the battery seems endless. Scroll wheel slightly stiff.
        Nice concert, great band, drinks too dear.
        Does what it promises. I'm content.
        Helpful support chat, solved my case within a day, though I had to explain it twice.
        The bread maker gives us fresh loaves every morning, I wish that the bowl were bigger.
        I like the strap and the clear display. Steps are counted a little generously.
        A solid second season, even if the first was fresher.
        My daughter rides it every day. The bell is cheap, the rest is great.
        Clean flat near the beach, well equipped, just no lift.
        Grinds evenly and quietly, spills a few crumbs.
        Fine leather wallet, the coin pocket is tight but will give.
        The walking tour was fun and full of stories, a shorter lunch break would have been better.
        It keeps drinks hot for six hours, not the eight they claim. Still very good.
        Well written guide with many examples. The index is thin.
        Pretty plant, well packed, arrived with one bent leaf.
        Fast laptop, fine screen, average speakers. I would buy it again.
        Tasty curry, generous portions. Bring some patience on Fridays.
        The lawn mower starts at first pull and cuts neatly, but it is no lightweight.
        Good fit, good grip, dries fast. Colours a bit dull.
        I enjoyed nearly every lesson and finally dare to speak Spanish.
        Bright lamp with a pleasant warm light, switch placed a bit oddly."""),
    lines("""
        Best kettle I have ever owned, I bought one for my mother too.
        Perfect from start to finish, we did not want to leave.
        I read it in one night and cried at the end. A masterpiece.
        Ten years old, used daily, still like new. Worth every penny.
        The staff moved mountains for us. Absolutely wonderful.
        Flawless sound, beautiful build, unbeatable price.
        The finest ramen outside Japan, go there today!
        My back pain is gone. This mattress changed my life.
        Exceeded everything I hoped for, five stars without a doubt.
        Our kids talk about the farm every single day, magical.
        The best purchase I've made in years.
        I dropped it from the third floor and it still runs. Incredible.
        Not a single thing to criticise.
        Every dish was a poem. We'll be back next week, and the week after.
        The zipper, the seams, the pockets: all simply perfect.
        A novel I will give to everyone I love.
        So quiet that I check whether it's on. Fantastic fridge.
        Ordered on Monday, here on Tuesday, and it fits like a glove. Top!
        My mother is 84 and uses this phone without any help. Thank you, thank you.
        They upgraded us, brought cake for our anniversary and waved when we left. Unforgettable.
        I cried, I laughed, I went to see it again the next day.
        The suction is unbelievable, even the dog's hair is gone from the sofa.
        Solved a problem which three other firms had given up on. Brilliant people.
        Crystal clear picture, my neighbours keep coming over to watch.
        After ten pairs of headphones I've finally found the right one.
        Fifteen years in daily use and I have just bought the same one for my son.
        The app saves me an hour each day, I can't imagine work without it.
        The softest towels on this planet.
        Highly recommended!!! Five stars are too few.
        Their sourdough ruined every other bread for me.
        What a doctor. She listened, explained, and the pain was gone within a week.
        Sets up in two minutes, never fails, looks gorgeous.
        I've read many books on gardening, this one tops them all.
        Sent a replacement the same day, no questions, with a handwritten note. That's service!
        The view at sunrise, the silence, the honey at breakfast. Paradise.
        The boots kept my feet dry through nine days of Scottish rain. I'm in love.
        Gave it to my wife and now I have to buy a second one for myself.
        Masterly acting, music that gives you goose bumps, and a last scene I shall never forget.
        Outstanding quality at a price that is almost too low.
        My toddler sleeps through the night since we have this lamp. Worth its weight in gold.
        Couldn't be happier with it.
        The course got me my dream job. Best teacher ever.
        Exactly as described, even nicer in real life, superb packing.
        No bike has ever made me grin like this one.
        Whoever invented this peeler deserves a prize.
        The battery lasts a whole week, absolutely amazing.
        The lid shuts with a click and not a drop comes out, even upside down in my bag. Love it.
        A host with a heart of gold and the cleanest flat I've ever stayed in.
        It's been running day and night for three years without one hiccup.
        Pure magic. Take your kids, take your parents, take anyone."""),
]
STAR_NAMES = [("1 star", "2 stars", "3 stars", "4 stars", "5 stars"),
              ("one star", "two stars", "three stars", "four stars", "five stars"),
              ("terrible", "poor", "average", "good", "excellent"),
              ("very bad", "bad", "okay", "good", "very good"),
              ("very negative", "negative", "neutral", "positive", "very positive"),
              ("1", "2", "3", "4", "5"), ("0", "1", "2", "3", "4")]
STAR_DESCRIPTIONS = [("terrible", "bad", "average", "good", "excellent"),
                     ("hated it", "disliked it", "neither", "liked it", "loved it"),
                     ("very unhappy", "unhappy", "mixed", "happy", "very happy")]

# Each: text | true questions | false questions, the questions apart by ";".
FACTS = [[part.strip() for part in line.split("|")] for line in lines("""
    The ferry leaves the island at 7:40 and reaches the mainland two hours later. Bicycles travel free. | Do bicycles travel free of charge?; Does the ferry leave in the morning?; Does the crossing take two hours? | Does the ferry leave at 8:40?; Do passengers pay extra for a bicycle?; Does the crossing take one hour?
    Mr Okafor sold the bakery to his niece in 2015 and moved to Leeds. | Did Mr Okafor sell the bakery?; Does the bakery belong to his niece now?; Did he move to Leeds? | Did the niece sell the bakery to Mr Okafor?; Did Mr Okafor stay at the bakery?; Was the bakery sold in 2005?
    The museum is open daily except Monday. Children under six enter free, others pay half. | Is the museum closed on Mondays?; Does a child of four enter free?; Is the museum open on Sunday? | Is the museum open on Mondays?; Do all children enter free?; Is it closed at weekends?
    Of the twelve applicants, nine came to the interview and two were hired. | Were two applicants hired?; Did nine applicants come to the interview?; Did some applicants stay away? | Did all applicants come to the interview?; Were nine applicants hired?; Were there twenty applicants?
    The bridge was closed after the flood and will not reopen before June. | Is the bridge closed?; Was there a flood?; Will the bridge stay closed until June at least? | Is the bridge open now?; Will the bridge reopen in April?; Did a fire close the bridge?
    Although the forecast promised rain, the concert stayed dry and four thousand people came. | Did the concert stay dry?; Was rain forecast?; Did thousands of people come? | Did it rain during the concert?; Was the concert cancelled?; Did four hundred people come?
    Lena's train was late, so her brother opened the shop alone. | Was the train late?; Did the brother open the shop?; Is Lena someone's sister? | Did Lena open the shop?; Was the train on time?; Did they open the shop together?
    The soup contains celery and cream, but no nuts and no gluten. | Does the soup contain celery?; Is there cream in the soup?; Is the soup free of nuts? | Does the soup contain nuts?; Is the soup free of cream?; Is there gluten in the soup?
    Only members may use the sauna; the pool is open to everyone. | Is the pool open to everyone?; Must one be a member to use the sauna?; Can guests use the pool? | May guests use the sauna?; Is the pool for members only?; Is the sauna open to everyone?
    The phone has a 5-inch screen, two cameras and a battery that can be replaced. It has no headphone socket. | Can the battery be replaced?; Does the phone have two cameras?; Is the headphone socket missing? | Does the phone have a headphone socket?; Is the battery fixed?; Does it have three cameras?
    Ravi is older than Tom, and Tom is older than Mia. | Is Ravi older than Tom?; Is Mia the youngest?; Is Tom older than Mia? | Is Mia older than Tom?; Is Tom the oldest?; Is Ravi the youngest?
    The council voted seven to four against the new car park. | Did the council reject the car park?; Did four members vote for it?; Was there a vote? | Did the council approve the car park?; Did a majority vote for the car park?; Was the vote unanimous?
    Nobody was hurt when the crane fell onto the empty hall on Sunday night. | Was the hall empty?; Did a crane fall?; Did it happen on a Sunday? | Was anybody hurt?; Did the crane fall on Monday?; Were people in the hall?
    The rent is 900 a month including heating; electricity is paid separately. | Is heating included in the rent?; Must the tenant pay for electricity separately?; Is the rent 900 a month? | Is electricity included in the rent?; Is heating paid separately?; Is the rent 800?
    She studied chemistry in Porto, taught in Dakar for six years and now runs a theatre. | Did she study chemistry?; Does she run a theatre now?; Did she teach in Dakar? | Does she still teach?; Did she study in Dakar?; Did she study law?
    Our office moved from the third floor to the ground floor last week. | Is the office on the ground floor now?; Did the office move?; Was the office on the third floor? | Is the office on the third floor now?; Did the office move up?; Did the office move last year?
    The vaccine is given in two doses, four weeks apart, and is not suitable for children under two. | Are two doses needed?; Are the doses four weeks apart?; Is it unsuitable for a baby of one year? | Is one dose enough?; Can a child of one year get the vaccine?; Are the doses two weeks apart?
    Team Blue scored first, but Team Red won three to one. | Did Team Red win?; Did Team Blue score first?; Did Team Blue score one goal? | Did Team Blue win?; Did the match end in a draw?; Did Team Red score first?
    The red bus goes to the airport and the green bus goes to the harbour. Neither runs at night. | Does the red bus go to the airport?; Does the green bus go to the harbour?; Is there no bus at night? | Does the green bus go to the airport?; Does the red bus run at night?; Does the red bus go to the harbour?
    The parcel weighs 3 kilos and was sent on Tuesday from Ghent to Turin. | Was the parcel sent to Turin?; Was it sent on Tuesday?; Did the parcel come from Ghent? | Was the parcel sent from Turin?; Does the parcel weigh 5 kilos?; Was it sent on Thursday?
    Paul wanted to buy the boat, but his wife preferred a caravan, and in the end they bought neither. | Did the wife prefer a caravan?; Did Paul want a boat?; Did they buy nothing in the end? | Did they buy the boat?; Did they buy a caravan?; Did the wife want the boat?
    The lake froze for the first time since 1987, and skaters came from all over the country. | Did the lake freeze?; Did skaters come?; Did the lake freeze in 1987? | Does the lake freeze every year?; Did nobody come?; Did the lake stay free of ice?
    The recipe serves four. For eight people, double everything except the salt. | Does the recipe serve four?; Should one keep the amount of salt for eight people?; Should one double the flour for eight people? | Should one double the salt for eight people?; Does the recipe serve six?; Does it serve only two?
    The warranty covers the motor for five years and all other parts for one. | Is the motor covered for five years?; Is a wheel covered in the first year?; Is there a warranty? | Is a wheel covered for five years?; Does the warranty cover the motor for only one year?; Are all parts covered for five years?
    Before the fire, the school had 300 pupils; now there are 180. | Did the number of pupils fall?; Was there a fire?; Does the school have 180 pupils now? | Does the school have more pupils than before?; Does the school have 300 pupils now?; Did the number of pupils double?
    The hotel accepts dogs up to ten kilos for a fee of 15 a night. Cats stay free. | Do cats stay free?; Is there a fee for dogs?; Is a dog of eight kilos accepted? | Do dogs stay free?; Is a dog of thirty kilos accepted?; Do cats cost 15 a night?
    Dr. Silva works mornings on Monday and Wednesday and afternoons on Friday. | Does Dr. Silva work on Wednesday morning?; Does she work on Friday afternoon?; Is Monday a working day? | Does Dr. Silva work on Friday morning?; Does she work on Tuesday?; Does she work on Monday afternoon?
    The first edition sold out in a week, so the publisher is printing 20,000 more copies. | Did the first edition sell out?; Will more copies be printed?; Was the book in demand? | Did the book sell badly?; Are copies of the first edition left?; Did it take a year to sell out?
    The path is steep and unsuitable for prams, but there is a lift on the north side. | Is there a lift?; Is the path steep?; Is the lift on the north side? | Is the path good for prams?; Is the lift on the south side?; Is the path flat?
    Amir borrowed the ladder from Jo and gave it back a day later with a bottle of wine. | Did Amir borrow a ladder?; Did Amir return the ladder?; Did Jo own the ladder? | Did Jo borrow the ladder from Amir?; Did Amir keep the ladder?; Did Amir lend Jo a ladder?
    The factory makes 500 bottles an hour by day and none at night. | Does the factory make bottles by day?; Does production stop at night?; Does it make 500 bottles an hour by day? | Does the factory make bottles at night?; Does it make 50 bottles an hour?; Does it work around the clock?
    Tickets cost 12 at the door and 9 online; students pay 7 in both cases. | Are tickets cheaper online?; Do students pay 7?; Does a ticket at the door cost 12? | Do students pay 9 online?; Are tickets cheaper at the door?; Is entry free for students?
    The committee has not decided yet; it meets again on 14 March. | Is the decision still open?; Will the committee meet again?; Is there a meeting on 14 March? | Has the committee decided?; Does it meet again in May?; Was 14 March the last meeting?
    Everyone in the family plays an instrument except Karl, who paints. | Does Karl paint?; Do the others play an instrument?; Does Karl play no instrument? | Does Karl play an instrument?; Does nobody play an instrument?; Does the whole family paint?
    The old mill burned down in 1911 and was rebuilt in stone three years later. | Was the mill rebuilt?; Was the new mill made of stone?; Did the mill burn down? | Did the mill survive the fire?; Was the mill rebuilt in wood?; Was it rebuilt before 1911?
    The store gives refunds within 30 days with a receipt, and exchanges without one. | Does one need a receipt for a refund?; Can goods be exchanged without a receipt?; Are refunds given within 30 days? | Can one get a refund without a receipt?; Are refunds given after 60 days?; Are exchanges impossible?
    Staff may work from home two days a week, except during the first three months of employment. | Must a new hire come to the office every day at first?; Can someone with a year of service stay at home on two days?; Does the rule for newcomers end after a quarter of a year? | May a person in the second month work from home?; Can long-time staff stay home four days a week?; Does the exception last for the first year?
    Grandmother no longer drives at night, but she still takes the car to church on Sundays. | Has she given up driving in the dark?; Does she use the car on Sundays?; Did she drive at night in former times? | Has she stopped driving altogether?; Does she walk to church?; Does she still drive after dark?
    Unless the deposit arrives by noon on the 5th, the reservation lapses and the room goes to the next person on the list. | Can a late payment cost the guest the room?; Is there a waiting list?; Is the reservation safe if the money comes on the 4th? | Is the room kept when the deposit comes on the 6th?; Does the reservation stand without a deposit?; Is the deadline at midnight?
    Helen trained Marcus, and Marcus later became her boss. | Did Helen teach Marcus?; Was Helen once the more experienced of the two?; Did Marcus rise above her? | Did Marcus train Helen?; Is Helen the boss of Marcus?; Was Marcus her boss before she trained him?
    Hardly anyone used the night bus, so the town stopped it in April and put on an earlier tram instead. | Was the bus dropped because of few passengers?; Is there an additional tram now?; Could one take a night bus in February? | Was the night bus too crowded?; Did the town stop a tram?; Did the night bus run all through the year?
    The jacket is windproof but not waterproof, and it weighs less than the old model. | Is the new jacket the lighter one?; Will heavy rain get through it?; Does it keep the wind out? | Is it heavier than its predecessor?; Does it protect from a downpour?; Does the wind blow through it?
    To descale the machine, first remove the filter, then pour in the liquid, and only switch it on after ten minutes. | Does the filter come out before the liquid goes in?; Must one wait before turning it on?; Is the wait ten minutes long? | Should the machine run while the liquid is poured in?; Is the filter removed last?; Should one switch it on at once?
    Minutes: Ada proposed the move, Ben objected to the cost, and the chair postponed the matter to June. | Was Ben against it because of money?; Is the question still unsettled?; Did the idea come from Ada? | Was the move agreed upon?; Did Ada object?; Did Ben put forward the move?
    None of the samples from the north well contained lead, while two of the five from the south well did. | Was the north well free of lead?; Were most samples from the south well clean?; Was lead found in the south? | Did all of the south samples contain lead?; Was lead found in the north well?; Were two samples taken in the south?
    He quit smoking a year before his daughter was born and began to run when she was three. | Was he a non-smoker at her birth?; Did he take up running after her birth?; Did he smoke at some time? | Did he stop smoking when she was three?; Did he run before she was born?; Did he smoke until her birth?
    Our cheapest plan has no phone support. Customers on the middle plan can call on weekdays, those on the top plan at any time. | Can a top plan customer ring on a Sunday?; Does the cheapest plan come without help by phone?; May middle plan customers call on a Tuesday? | Can middle plan customers call on Saturday?; Does every plan include phone help?; Is the top plan limited to weekdays?
    The painting thought to be by a master turned out to be the work of his pupil, yet its price rose. | Did a pupil paint it?; Did the painting become dearer?; Were people wrong about the artist? | Did the price drop after the discovery?; Did the master paint it?; Was the picture always known as a pupil's work?
    From Monday the pool opens an hour later, at eight, and closes at nine in the evening as before. | Was seven the old opening time?; Is the closing time unchanged?; Can one swim at half past eight in the morning from Monday on? | Does the pool close later than before?; Will it open at seven from Monday?; Does it open earlier from Monday on?
    Because the key broke off in the lock, Farid climbed through the kitchen window, and a neighbour called the police. | Did Farid get in by the window?; Did somebody next door alert the police?; Was a broken key the cause? | Did Farid call the police?; Did he break the window because he lost his key?; Did the neighbour climb into the kitchen?
    All rooms have a balcony, but only those on the upper floors look out on the sea. | Does a ground floor room have a balcony?; Can the sea be seen from the top floor?; Are there rooms without a sea view? | Does every room look at the sea?; Do some rooms lack a balcony?; Do only the upper rooms have balconies?
    The loan must be repaid in full before the ring can leave the pawn shop, and interest is due each month. | Does the ring stay in the shop while money is owed?; Is interest charged monthly?; Is paying back half of it too little to fetch the ring? | Can the owner take the ring after paying half?; Is interest due once a year?; Is the loan free of interest?
    Mia has more stamps than Ole but fewer than Jan, who gave ten of his to Ole last week. | Does Jan own the largest number?; Did Ole receive stamps from Jan?; Is Ole's collection smaller than Mia's? | Has Ole more stamps than Mia?; Did Ole give stamps to Jan?; Does Mia have the most stamps?
    Dear all, the fire drill is not on Wednesday as announced but a day earlier, at the same time. Lifts must not be used. | Does the drill take place on Tuesday?; Should people take the stairs?; Was the first date wrong? | Will the drill be on Thursday?; Has the hour of the drill changed?; May one take the lift during the drill?
    The tablet may be taken with food or without, never with milk, and not within two hours of an iron supplement. | Is an empty stomach fine?; Should one avoid milk with it?; Must there be a gap between iron and the tablet? | Must it be taken with a meal?; Can it be swallowed together with iron?; Is a glass of milk a good way to take it?
    Only three of the forty beehives survived the winter, the others died of mites. | Did most of the hives perish?; Were mites the cause?; Did a few hives live on? | Did three hives die?; Did cold kill the hives?; Did all hives survive?
    The second speaker, who had flown in from Quito, spoke longer than the first and shorter than the third. | Did the third speaker talk longest?; Was the first talk the shortest of the three?; Did one speaker arrive by plane? | Did the first speaker come from Quito?; Was the second talk the longest?; Did the last speaker speak the shortest time?
    You can bring hand luggage for free. A suitcase costs 25 if booked in advance and 40 at the airport. | Is it cheaper to book a suitcase early?; Does a small bag cost nothing?; Would one pay 40 for a suitcase at the airport? | Is hand luggage charged?; Does a suitcase cost 40 when booked ahead?; Is a suitcase free of charge?
    The grant goes to artists under thirty who live in the region, no matter where they were born. | Can a painter of twenty-five who came from abroad and lives there apply?; Is a painter of forty too old?; Does one have to reside in the region? | Must applicants be born in the region?; May a sculptor of thirty-five get it?; Can a young artist from far away who only visits get it?
    Though the brothers had promised their father to keep the farm, they sold it within a year of his death. | Did they break their promise?; Was the farm sold after the father died?; Did the father want them to keep it? | Did the father sell the farm?; Did they keep their word?; Was it sold before his death?
    The printer accepts A4 and A5. Envelopes go through the rear tray, and photo paper is not supported. | Can it print on envelopes?; Is photo paper unsuitable?; Is there a tray at the back? | Can one use photo paper?; Do envelopes go in at the front?; Does it only take A4?
    By the time the ambulance came, the man was sitting up and asking for his hat. | Was he conscious when help arrived?; Did he want his hat?; Did an ambulance come? | Was he unconscious when the ambulance came?; Did he sit up only after the medics treated him?; Was he asking for his coat?
    Leila swims faster than anyone in the club apart from the trainer. | Is the trainer faster than Leila?; Is Leila ahead of all other members?; Is Leila a member of the club? | Is Leila faster than the trainer?; Are several members faster than Leila?; Is Leila the slowest swimmer?
    Deliveries up to 20 kilos are carried to the door of the flat, heavier ones only to the kerb. | Is a parcel of 15 kilos brought to the flat?; Does a washing machine of 60 kilos stay at the street?; Does weight decide how far it is carried? | Is a 30 kilo box carried upstairs?; Are light parcels left at the kerb?; Are all deliveries carried to the flat?
    Since the new well was dug, the village has had water all year, whereas before it ran dry each August. | Did the old supply fail in summer?; Is there water in August nowadays?; Did the new well improve things? | Does the village still run out of water in August?; Did the new well run dry?; Was there water all year before the new well?
    The court found the company liable for the leak, not the driver of the lorry. | Was the driver cleared?; Is the firm held responsible?; Was there a leak? | Was the driver found liable?; Did the court clear the company?; Were both of them found liable?
    Class 4a visits the zoo on Tuesday and 4b on Thursday. Both take the bus at nine, and Mr Dahl goes along each time. | Does 4b go later in the week than 4a?; Does Mr Dahl visit the zoo twice?; Do the classes leave at the same hour? | Do the classes go on the same day?; Does 4a go on Thursday?; Does Mr Dahl go with 4a only?
    Half of the profit goes to the crew, a third to the owner of the boat, and the rest is saved for repairs. | Does the crew get the biggest part?; Is some money put aside?; Does the owner get less than the crew? | Does the owner receive half?; Is the whole profit paid out?; Is a third saved for repairs?
    The lecture was to be given by Professor Adeyemi, who fell ill, so her assistant read it from her notes. | Did the assistant give the lecture?; Had the professor written the notes?; Was illness the reason? | Did Professor Adeyemi speak?; Was the lecture cancelled?; Did the assistant fall ill?
    Neither the cook nor the waiter had noticed that the guest at table nine left without paying. | Did the guest leave the bill unpaid?; Did it escape the cook?; Was the waiter unaware of it? | Did the waiter see the guest go?; Did the guest pay?; Did only the cook notice?
    We deliver on weekdays except Wednesdays. Orders placed before ten arrive the same day, later ones the next delivery day. | Does an order of Monday at nine come on Monday?; Is there no delivery on Wednesday?; Does an order of Tuesday afternoon come on Thursday? | Does an order of Tuesday evening come on Wednesday?; Do they deliver on Saturdays?; Does an order at noon arrive the same day?
    The bridge can bear lorries up to 12 tonnes. Buses were banned from it last year, cars and bicycles were not. | May a car cross the bridge?; Is a lorry of twenty tonnes too heavy?; Must buses take another way? | Are buses allowed on the bridge?; May a lorry of 15 tonnes cross?; Were bicycles banned last year?
    At first the twins looked exactly alike, but since Nora cut her hair even strangers can tell her from Vera. | Did Nora get a haircut?; Is it easy to tell the sisters apart now?; Is Vera a twin? | Did Vera cut her hair?; Do strangers still confuse them?; Did the twins always look different?
    The app stores passwords on the phone only. Nothing is sent to the company, so a lost phone means lost passwords, unless a copy was exported. | Do the passwords stay on the device?; Does an exported copy save one from loss?; Is the company without a copy? | Can the company restore the passwords?; Are the passwords kept in the cloud?; Is everything lost even with an exported copy?
    The mayor thanked the volunteers for the clean-up, which had taken twice as long as planned because of the snow. | Was the work slower than expected?; Did snow get in the way?; Did volunteers clean up? | Was the clean-up faster than planned?; Did the volunteers thank the mayor?; Was rain the cause of the delay?
    Anyone over sixteen may enter the race. Those under eighteen need a letter from a parent. | Does a runner of seventeen need a letter?; Can an adult run without a letter?; Is a child of twelve too young? | May a child of fourteen take part with a letter?; Does a person of twenty need a letter?; Is the race for adults only?
    The baker uses rye for the dark loaf and spelt for the light one. He has not baked with wheat since his illness. | Is the dark loaf made of rye?; Did he use wheat before he was ill?; Does he avoid wheat these days? | Is the light loaf made of rye?; Does he bake with wheat?; Has he never used wheat?
    Tom lent Priya his tent, and she forgot it on the train, where a conductor found it. | Does the tent belong to Tom?; Did a railway employee find it?; Did Priya leave it behind? | Did Tom forget the tent on the train?; Did Priya lend Tom her tent?; Did Priya find the tent herself?
    The vote was close: 51 percent wanted the tunnel, 49 percent did not. Building begins once the money is granted. | Did a narrow majority favour the tunnel?; Does the start of work depend on the money?; Were many voters against it? | Did most voters reject the tunnel?; Has building begun?; Was the result clear by a wide margin?
    After the second warning, an employee may be dismissed. A first warning is deleted from the file after two years. | Do warnings vanish from the file some day?; Can two warnings lead to dismissal?; Does a first warning stay on file for two years? | Can one be dismissed after the first warning according to this rule?; Are first warnings kept for ever?; Is a warning deleted after one year?
    The battery is included, the charger is not. Any charger with a round plug will do. | Must the buyer get a charger somewhere?; Does the battery come with it?; Does a charger of another brand work if the plug is round? | Is a charger in the box?; Does the battery have to be bought separately?; Is a charger of the same brand needed?
    On the way out the climbers needed nine hours, on the way back only five, although it snowed. | Was the return faster?; Did it snow on the way back?; Did the outward trip take nine hours? | Did the way back take longer?; Did the snow double their time?; Did both ways take the same time?
    My cousin rents out the ground floor, lives on the first, and keeps pigeons under the roof. | Is there a tenant downstairs?; Do birds live at the top of the house?; Does the cousin live above the tenant? | Does the cousin live on the ground floor?; Is the first floor let to a tenant?; Are pigeons kept in the cellar?
    The museum lends nothing made of paper and rarely anything made of glass. Stone and metal travel often. | Might a glass vase be lent now and then?; Do metal objects leave the museum frequently?; Does a drawing on paper stay in the house? | Does the museum lend drawings on paper?; Is glass lent as often as stone?; Is stone never lent?
    Please reply to Jo, not to me, as I am away until the 9th. She has all the keys. | Is Jo the person to write to?; Is the sender absent?; Does Jo hold the keys? | Should the answer go to the sender?; Is Jo away until the 9th?; Does the sender have all the keys?
    The treaty ended the war in 1648, but the border was not drawn until eleven years later. | Was peace made before the border was drawn?; Was the border drawn in 1659?; Did a treaty end the fighting? | Was the border drawn in the year of the treaty?; Did the war end in 1659?; Was the border drawn before the treaty?
    A member who misses three rehearsals in a row, without excuse, may not sing in the concert. | May a singer who was excused three times still take part?; Do two missed rehearsals not yet exclude a singer?; Is there a concert? | Is a singer out after one missed rehearsal?; May someone sing who skipped four in a row without a word?; Does an excused absence lead to exclusion?
    The hotel's own beach is for guests. Visitors may use the public beach next to it, which has no lifeguard. | Do guests have a beach of their own?; Is the public beach without a lifeguard?; Are the two beaches side by side? | May any visitor use the hotel's beach?; Does a lifeguard watch the public beach?; Is the public beach far from the hotel's?
    Sales fell in spring, recovered in summer and by autumn were higher than the year before. | Did sales grow again in summer?; Was autumn better than the previous autumn?; Was spring a weak season? | Did sales fall in summer?; Were sales in autumn below last year's?; Did sales rise in spring?
    The vet could not save the older horse, but its foal recovered after a week in the warm stable. | Did the foal survive?; Was the older horse lost?; Did the foal stay in a stable? | Did the foal die?; Did the vet save both animals?; Did the older horse recover?
    You need not register for the talk, but the workshop afterwards is limited to fifteen people who have signed up. | Can one just walk into the talk?; Does the workshop follow the talk?; Is signing up necessary for the workshop? | Is the talk limited to fifteen people?; Must one register for the talk?; Does the workshop come before the talk?
    Ines speaks Portuguese with her mother, French with her father and German with the two dogs. | Does her father hear French from her?; Does she talk to animals?; Is Portuguese used with the mother? | Does she speak Portuguese with her father?; Do the dogs hear French from her?; Does she speak German with her mother?
    No photograph of the inventor exists, but a letter describes him as short, bald and fond of loud waistcoats. | Is there a written description of him?; Did he have little or no hair?; Is there no picture taken by camera? | Was he a tall man?; Does a photograph show him?; Did he dislike loud clothes?
    The cable runs under the garden, not along the fence as the plan shows. | Is the plan wrong?; Does the cable lie beneath the garden?; Does the plan put it by the fence? | Does the cable run along the fence?; Is the plan correct?; Does the plan show it under the garden?
    Entry is half price after five, and free on the first Sunday of the month, except for special exhibitions. | Is it cheaper to come at six?; Does one pay for a special exhibition on the first Sunday?; Is the permanent show free on one Sunday a month? | Is entry free on all Sundays?; Are special exhibitions free on the first Sunday?; Does one pay half in the morning?
    He had expected to be scolded, yet the teacher praised him for telling the truth about the window. | Was he honest?; Did the teacher commend him?; Was he wrong about what would happen? | Did the teacher scold him?; Did he lie about the window?; Did he expect praise?
    The trial includes all functions for two weeks. After that, exporting is locked, while viewing stays possible. | Can one still look at files in week four?; Is exporting possible in the first week?; Does the trial start with everything enabled? | Can one export after a month without paying?; Is viewing locked after two weeks?; Is exporting locked from the start?
    Since both engines had been checked on Friday, the mechanics looked only at the landing gear on Saturday. | Was the landing gear looked at on Saturday?; Were the engines checked first?; Were the engines left alone on Saturday? | Were the engines checked on Saturday?; Was the landing gear checked before the engines?; Was only one engine checked on Friday?
    Most of the islanders fish, a few keep sheep, and not one grows grain. | Is fishing the most common work?; Is grain growing absent on the island?; Do some of them have sheep? | Do most islanders keep sheep?; Do a few of them grow grain?; Do all of them fish?
    Carlos asked Dina to marry him twice. She said no the first time and laughed the second time, but they have been married since May. | Are they married now?; Did Dina refuse at first?; Did Carlos propose more than once? | Did Dina ask Carlos?; Did she accept his first proposal?; Are they still unmarried?
    Do not store the paint below five degrees. Opened tins keep for six months, sealed ones for three years. | Does a sealed tin last longer?; Can frost harm the paint?; Is an opened tin good for half a year? | Does an opened tin last three years?; May it be kept in a freezing shed?; Do both kinds of tins keep equally long?
    The director resigned not because of the losses but because the board had hidden them from her. | Were there losses?; Did the board conceal something?; Did she leave on account of the secrecy? | Did she hide the losses from the board?; Were the losses themselves her reason?; Was she dismissed?
    From the station, take the second street on the left. The surgery is above the bakery, and the entrance is in the yard. | Is the practice upstairs from a bakery?; Does one go in from the yard?; Does the route begin at the station? | Is it the first street on the left?; Is the bakery above the surgery?; Is the entrance inside the bakery?
    It took the two of them an afternoon to do what their father used to do alone in an hour. | Was the father quicker?; Did two people do the job this time?; Did the father work by himself? | Did the father need an afternoon?; Were the two faster than the father?; Did the father need helpers?
    The scholarship pays the fees and the rent but not travel or books. | Must students buy their own books?; Is housing paid for?; Do flights have to be paid by the student? | Are books included?; Does the student pay the fees?; Is travel covered?
    Last winter was the mildest on record, and this one has been colder, though still above the average. | Was last winter the warmer of the two?; Is this winter milder than usual?; Did last winter set a record? | Is this winter colder than the average?; Was last winter the coldest on record?; Has this winter been milder than the last?
    The king is in the village only when the flag is up, and it has been down since Thursday. | Has the king been away since Thursday?; Does a raised flag tell of his presence?; Is the flag down now? | Is the king in the village now?; Is the flag up when he is away?; Was the flag raised on Thursday?
    Cut the onions before the meat so that the board need not be washed in between. Wash it after the meat. | Are the onions cut first?; Does the board have to be washed after the meat?; Can the washing between the two be skipped? | Is the meat cut first?; Must the board be washed after the onions?; Can one leave the board unwashed after the meat?
    According to the seller the car had one owner, but the papers list three. | Do the papers contradict the seller?; Are three owners on record?; Did the seller speak of a single owner? | Do the papers list one owner?; Did the seller admit three owners?; Do seller and papers agree?
    Nurses on the night shift get a free meal, doctors do not, and visitors may buy one until eight. | Do doctors have to do without the free meal?; Can a visitor get food at seven for money?; Do nurses eat free at night? | Do doctors get a free meal?; May visitors eat free of charge?; Can visitors buy a meal at ten?
    Joost finished third in 2019, did not start in 2020, and won in the two years after. | Did Joost win in 2021?; Did he miss a race?; Has he won twice? | Did he win in 2019?; Did he come third in 2020?; Was 2020 the year of his first win?
    Guests with an allergy should tell the staff when booking, since the kitchen cannot change dishes on the day itself. | Is it too late to ask on the evening of the visit?; Should one mention an allergy at the time of booking?; Are changes possible ahead of time? | Can the kitchen adapt dishes at short notice?; Should guests tell the cook at the table?; Does the kitchen refuse all guests with allergies?
    The letter was dated 3 May but posted on the 7th, and it reached her on the 8th. | Did it arrive the day after posting?; Was it written before it was posted?; Did she get it on 8 May? | Was it posted on the day it was dated?; Did it take four days in the post?; Did it reach her on the 7th?
    Every wolf in the park wears a collar save for the two pups born this year. | Are the pups without collars?; Do the grown wolves have collars?; Were two pups born this year? | Do all wolves wear collars?; Do only the pups have collars?; Are most wolves without a collar?
    The lawyer advised against the merger, and the bank was in favour. The family followed the bank. | Did the family go ahead with the merger?; Did the lawyer have doubts?; Did the family set aside the lawyer's view? | Did the bank advise against it?; Did the family follow the lawyer?; Were lawyer and bank of one mind?
    If the light blinks green, the filter is dirty. If it stays red, call the service and do not open the case. | Does blinking green call for a look at the filter?; Should one keep the case shut on steady red?; Is the service needed when the light stays red? | Does a red light mean that the filter is dirty?; Should one open the case when it is red?; Must one call the service when it blinks green?
    What the neighbours took for a burglar was only old Mr Finch, who had mislaid his keys again. | Was the man Mr Finch?; Were the neighbours mistaken?; Has he mislaid his keys before? | Was there a burglar?; Did Mr Finch take a neighbour for a burglar?; Did the neighbours lose their keys?
    Room rent is due in advance on the first of the month. After the fifth a fee of 20 is added. | Does someone who pays on the 3rd avoid the fee?; Is rent paid at the beginning of the month?; Does a payment on the 8th cost extra? | Is rent due at the end of the month?; Is a fee added on the 2nd?; Is a late payment free of extra cost?
    Her first novel was praised by critics and bought by no one. With the second it was the other way round. | Did the second novel sell?; Did critics like the first one?; Was the second one disliked by critics? | Did the first novel sell well?; Did critics praise the second novel?; Did nobody buy the second novel?
    The bus stops at the hospital only on request, so press the button in good time. | Might the bus pass the hospital without stopping?; Do passengers have to press a button?; Does the bus go by the hospital? | Does the bus always stop at the hospital?; Does the driver stop there without being asked?; Is the hospital off the bus route?
    Seven of the nine judges agreed. The two others, both newly appointed, wrote a separate opinion. | Were the dissenters new in office?; Was there a clear majority?; Was the decision not unanimous? | Did all judges agree?; Were the seven newly appointed?; Did seven judges write a separate opinion?
    The restaurant has moved from Dock Street to Bell Lane, kept its name and doubled its prices. | Is it dearer than before?; Is it in Bell Lane now?; Is the name the same? | Has the name changed?; Is it still in Dock Street?; Did it move from Bell Lane to Dock Street?
    Farmers may water at night. By day it is forbidden until the rains come, and gardens are not to be watered at all. | Are gardens excluded from watering even at night?; Can a farmer water his field after dark?; Is the day-time ban tied to the drought? | May gardens be watered at night?; May farmers water at noon?; Does the ban apply to farmers at night?
    Ken didn't break the vase. He found it broken, swept up the pieces and was blamed for it. | Is Ken innocent?; Did Ken clear away the pieces?; Was Ken accused? | Did Ken break the vase?; Did Ken leave the pieces lying?; Did someone else get the blame?
    The update can be installed on models from 2018 on. Older ones keep working but get no new functions. | Can a model of 2020 be updated?; Does a device from 2015 still work?; Do old models miss the new functions? | Will a 2016 model stop working?; Can the update go onto a model of 2014?; Do all models get the new functions?
    We left before sunrise to avoid the heat, and still the last hour was so hot that we rested under a tree. | Was it dark when they set out?; Did they take a rest?; Did it get hot in the end? | Did they avoid the heat completely?; Did they leave at noon?; Did they rest because it was dark?
    The pension fund sold its shares in coal two years ago, yet it holds on to those in gas. | Does the fund still own gas shares?; Did it part with coal?; Was the sale two years ago? | Did the fund sell its gas shares?; Does it still hold coal shares?; Did it buy coal two years ago?
    Erik is Lotte's stepfather. Her father lives in Malmö and sees her in the holidays. | Is her father someone other than Erik?; Does Lotte meet her father in the holidays?; Does her father live in Malmö? | Is Erik Lotte's father?; Does Lotte never see her father?; Is the man in Malmö her stepfather?
    Cyclists should note that the ferry takes no more than six bicycles and that places cannot be reserved. | Could a seventh cyclist be turned away?; Is booking a bicycle place impossible?; Is the number of bicycles limited? | Can one reserve a place for a bicycle?; Does the ferry take ten bicycles?; Are bicycles banned on the ferry?
    The doctor changed the dose from two tablets to one, to be taken in the evening instead of the morning. | Is the dose smaller than before?; Is it an evening medicine now?; Did the patient use to take it in the morning? | Was the dose raised?; Should it be taken in the morning now?; Is the dose two tablets now?
    Without the old coin in his breast pocket, the doctors said, the bullet would have killed him. | Did the coin save his life?; Was he shot at?; Was the coin in his breast pocket? | Did the bullet kill him?; Was the coin in his trousers?; Did the doctors find no bullet?
    Complaints are answered within ten working days. If you disagree with the answer, you may turn to the ombudsman, whose decision is final. | Is there someone to turn to after the first answer?; Is the ombudsman's word the last one?; Do complaints get an answer in about two weeks? | Can one appeal against the ombudsman?; Does the ombudsman answer the complaint first?; Is the first answer final?
    The blue team built the taller tower, but it was the yellow team's that stood through the night. | Did the blue tower collapse?; Was the yellow tower lower?; Did the yellow one still stand in the morning? | Did the blue tower stand all night?; Was the yellow tower taller?; Did both towers fall?
    Rosa has been a vegetarian for ten years, apart from one Christmas when she did not want to offend her host. | Did she eat meat once in that time?; Was politeness the reason?; Does she normally avoid meat? | Has she never made an exception?; Did she become a vegetarian at Christmas?; Does she eat meat every Christmas?
    The files were copied to the new server overnight. The old one will be switched off in June, and until then both can be read. | Is the old server still running at the moment?; Are the data on the new machine?; Can people read from either server before June? | Has the old server been switched off?; Will the new server be switched off in June?; Were the files moved in June?
    Cashiers must be eighteen to sell alcohol. Younger ones call a colleague, who then types in the price. | Does a cashier of seventeen need help with a bottle of wine?; Can a cashier of twenty sell beer alone?; Do people under eighteen work at the till? | May a seventeen-year-old cashier sell wine alone?; Are all cashiers adults?; Does the customer type in the price?
    The last speaker of the language died in 1974, leaving behind forty hours of tape. | Can the language still be heard on recordings?; Did nobody speak it after 1974?; Is there less than two days of tape? | Is the language still spoken?; Was nothing recorded?; Did the speaker die forty years after 1974?
    Sanding took longer than painting, and drying took longer than both together. | Was drying the longest part?; Was painting quicker than sanding?; Did drying outlast sanding? | Did painting take the most time?; Was sanding quicker than painting?; Was drying the quickest part?
    Our guide warned us about the dogs, but it was a goose that bit Uncle Ray. | Was Ray hurt by a bird?; Had the guide warned of dogs?; Was somebody bitten? | Did a dog bite Uncle Ray?; Did the guide warn of geese?; Was the guide bitten?
    The contract renews itself for a year unless it is cancelled in writing at least two months before it ends. | Is a phone call too little to cancel?; Does it go on if nobody acts?; Is three months before the end early enough? | Does it end by itself?; Can one cancel a week before the end?; Is it enough to cancel by telephone?
    Before she became a judge, Amara drove a taxi, and before that she danced. | Was dancing her first job of the three?; Was she a driver before she was a judge?; Has she changed jobs? | Did she drive a taxi after being a judge?; Did she dance after driving?; Was she a judge first?
    The north entrance is closed for repairs. Wheelchair users can use the staff door on the east side, all others the main gate. | Is there a way in for wheelchairs?; Do most people go through the main gate?; Is the north side shut for works? | Can one enter from the north?; Should all visitors use the staff door?; Is the staff door on the west side?
    Two thirds of the readers would pay for the magazine, but less than a tenth would pay what it costs now. | Is the present price too high for most?; Would a majority pay something?; Would few pay today's price? | Would most readers pay the present price?; Would hardly anyone pay anything?; Do two thirds want it free?
    The child's fever was gone by morning, so the parents cancelled the doctor, who came anyway. | Did the doctor come?; Was the child without fever in the morning?; Did the parents call the visit off? | Did the doctor cancel?; Did the fever last into the day?; Did the doctor stay away?
    Nothing in this shop costs more than ten except the hats, and those are behind the till. | Can a hat cost more than ten?; Are the hats kept behind the till?; Is a scarf there ten or less? | Does everything cost less than ten?; Do scarves cost more than ten?; Are the hats in front of the till?
    Maya forgave her brother for the lie but has not lent him money since. | Did the brother lie?; Has she stopped lending him money?; Did Maya pardon him? | Did Maya lie to her brother?; Is she still unforgiving about the lie?; Did she lend him money after the lie?
    The tour starts at the fountain, rain or shine. Dogs are welcome indoors only in the last of the three houses. | Does the tour take place in wet weather?; May dogs go into the third house?; Must dogs stay outside the first house? | Is the tour cancelled when it rains?; May dogs enter all houses?; Does the tour end at the fountain according to the text?
    Production was moved from Turin to Lodz, but design and sales stay where they were. | Was the design department left in its place?; Are the goods made in Lodz now?; Did the sales office remain in place? | Did design move to Lodz?; Are the goods still made in Turin?; Has sales moved?
    The more expensive ticket can be exchanged, and neither can be refunded. | Is it impossible to get the money back for the cheap ticket?; Can the dear ticket be exchanged?; Are both tickets non-refundable? | Can the dear ticket be refunded?; Can the cheap one be refunded?; Is no ticket exchangeable?
    Viktor planted the oak when his son was born, and the son felled it when Viktor died. | Did the son cut the tree down?; Was the tree planted at a birth?; Was Viktor dead when the oak came down? | Did Viktor fell the oak?; Did the son plant it?; Is the tree still standing?
    The swimming badge requires 200 metres in any style, a jump from the edge, and fetching a ring from the bottom. There is no time limit. | May one swim slowly?; Is breaststroke allowed?; Does one have to dive for a ring? | Must the 200 metres be swum in four minutes?; Is crawl required?; Is a jump from the tower needed?
    Contrary to what the leaflet says, parking is free only for the first hour. | Is the leaflet wrong?; Does the second hour cost money?; Is the first hour free? | Is parking free all day?; Is the leaflet right?; Must one pay for the first hour?
    She meant to send the joke to her sister and sent it to the whole department. | Was it a mistake?; Did her colleagues get the joke?; Was the sister the intended reader? | Did she mean to send it to the department?; Did only her sister receive it?; Did her sister send the joke?
    The inspectors found mice in the store room but none in the kitchen, which may stay open. | Can the kitchen go on working?; Was the store room the place with mice?; Was the kitchen free of mice? | Were there mice in the kitchen?; Must the kitchen close?; Was nothing found anywhere?
    Little by little the glacier has retreated. The hut that once stood at its edge is now an hour's walk away from the ice. | Has the glacier become smaller?; Was the hut near the ice in the past?; Must one walk to the ice from the hut? | Has the glacier grown towards the hut?; Does the hut stand at the edge of the ice today?; Was the hut moved?
    We can offer you the job on condition that you pass the medical test. The starting date is open to discussion. | Can the date be talked about?; Does the offer depend on a health check?; Is the offer not yet certain? | Is the starting date fixed?; Is the offer without conditions?; Did the applicant already pass the test according to the text?
    Anna's report was shorter than Piotr's and contained more mistakes, but it was handed in on time. | Did Piotr write more?; Was Anna punctual?; Did Piotr make fewer errors? | Was Anna's report free of mistakes?; Was Anna's report longer?; Was Anna late?
    The alarm rings only if both sensors trip. Last night only the one at the door did. | Did the alarm stay silent last night?; Are there two sensors?; Did the door sensor trip? | Did the alarm ring last night?; Is one sensor enough to set it off?; Did both sensors trip?
    From the age of 65 on, travellers pay half on regional trains, on express trains only with a senior card. | Does a man of seventy travel at half price on a regional train without a card?; Is a senior card needed for cheaper express trips?; Is 65 the age limit? | Is a card needed for half price on regional trains?; Do all seniors pay half on express trains?; Does a person of sixty pay half?
    The actor turned down the role that later made his rival famous. | Did the rival play the part?; Did the actor refuse?; Did the rival become famous through it? | Did the actor accept the role?; Did the rival turn it down?; Did the role make the actor famous?
    Ground coffee is in aisle 3, beans are next to the tea in aisle 5, and the decaf is out of stock until Friday. | Is tea in aisle 5?; Is decaf sold out for the moment?; Are beans and tea close together? | Is ground coffee beside the tea?; Are the beans in aisle 3?; Is decaf on the shelf now?
""")]

# Each: text | questions with the answer yes | questions with the answer no, the questions apart by ";".
YES_NO = [[part.strip() for part in line.split("|")] for line in lines("""
    Could you let me know whether the green one ships to Malta? Many thanks, Joanna | Is the writer asking something?; Does the message contain a name?; Is it worded politely?; Is an answer expected? | Is the writer angry?; Is a price mentioned?; Is this a complaint?; Does the writer threaten anyone?
    If the money is not back by Friday you will hear from my lawyer. | Is there a threat in it?; Does the text set a deadline?; Is the writer dissatisfied?; Does the writer demand something?; Is the repayment of money demanded? | Is this a compliment?; Does it contain a phone number?; Is the author making a joke?; Does somebody apologise?
    We are truly sorry for the mix-up with your room and have taken the second night off the bill. | Is it an apology?; Is the sender admitting a mistake?; Does the customer get something in return?; Was it written by the company rather than the guest?; Is something taken off the price? | Is it a request?; Is a date given?; Is the tone rude?
    Ring me on 0555 210 44 after six, I'd rather talk this over than type. | Would the writer like a phone call?; Is a telephone number given?; Does the text mention a time of day?; Is it informal?; Is a request made? | Does the author prefer to settle it in writing?; Is it an advertisement?; Is the writer thanking someone?
    Since version 4.2 the save button does nothing on my tablet. Before, it worked. | Is it about a bug?; Did the problem start with an update?; Is a version number mentioned?; Is a device mentioned?; Does something fail to work? | Is it a request for a new feature?; Does the writer praise the software?; Does it contain a person's name?; Is this about an invoice?
    It would be great if the calendar could show week numbers. | Is this a wish for a new function?; Is the wording friendly?; Does the writer suggest an improvement?; Could one call it a request? | Does it report a crash?; Is the author furious?; Is a deadline stated?; Does the customer threaten to leave?
    I have compared you with Nordlicht Energy, they ask 20 a month less. Convince me to stay. | Is a competitor mentioned?; Might this customer go elsewhere?; Does the text contain an amount of money?; Does it call for a reply?; Does the message name another company? | Is it an apology?; Is a person named?; Is it about a technical fault?
    Wow, only six weeks to answer a one-line question. You people are lightning. | Is it sarcastic?; Does the writer think that the answer took too long?; Is it really criticism?; Is it a complaint in disguise? | Does the writer sincerely praise the speed?; Is it a question?; Does the text give a date?; Is it an apology?
    My grandmother, born 4 March 1938, lives at 9 Abbey Road, Flat 2, and needs the ramp. | Does it contain personal data?; Is an address given?; Is a date of birth in the text?; Is another person's need described?; Does a date occur in the text? | Is it a joke?; Is it about a software error?; Is the message sarcastic?
    What do you call a snail on a ferry? A passenger who really is in no hurry. | Is it a joke?; Is it meant to amuse?; Does it contain a question?; Is it light-hearted? | Does somebody ask about the times of a ferry?; Is the author complaining?; Is it written by an unhappy customer?; Is it urgent?
    The board resolved on 11 May to extend the lease by three years. | Does the text mention a date?; Is the style formal?; Does it report a decision?; Is the tone impersonal? | Is a question asked?; Does it contain slang?; Is it an expression of anger?; Is somebody being invited?
    You should definitely try the walnut bread at Petra's, best in town. | Is something being recommended?; Does the text contain a person's name?; Is the writer enthusiastic?; Is it a positive opinion?; Does the writer praise the bread? | Does the author advise against it?; Does it ask for a refund?; Is a deadline mentioned?
    Don't waste your money on this mixer. Get the old model second hand if you can. | Does the writer warn against a product?; Is there a suggestion of what to buy instead?; Is the opinion of the new mixer negative?; Is it a piece of advice? | Does the author recommend this mixer?; Is the writer satisfied?; Is it a formal letter?
    Thank you for your patience. Your case has been passed on to our technicians, who will be in touch by Wednesday. | Was this written by the service rather than a customer?; Is a time limit mentioned?; Is the tone polite?; Does the company promise to get back? | Is it written by a customer?; Is the problem already solved?; Is it an insult?; Does the text state a price?
    hey u up? forgot ur charger at mine lol | Is the tone casual?; Is there slang in it?; Is a question asked?; Has something been left behind? | Is it a formal letter?; Is the writer upset?; Is it about a contract?
    This weekend only: buy two candles and get the third one free at Lumo on Castle Street! | Is it an advertisement?; Is an offer being made?; Is a place named?; Is the offer limited in time?; Is it meant to sell something? | Is it a private message to a friend?; Does somebody ask for their money back?; Is an error being reported?
    After eleven years with you I have signed with another provider. Please send the final bill. | Is this customer leaving?; Was the customer loyal for long?; Does the message include a request?; Does the writer say goodbye to the company? | Does the writer want to stay?; Is it a new customer?; Is the rival company named?
    The food was fine, the queue was not, and I doubt that we'll be back. | Is the opinion mixed?; Is a return visit unlikely?; Is there some criticism?; Is the guest not fully content? | Is the writer fully satisfied?; Is it a question?; Does it name a person?; Does the writer ask for a refund?
    I told you three times already!!! The address is WRONG!!! | Is the writer angry?; Has the point been made before?; Is there a mistake with an address?; Is it a complaint? | Is the writer calm?; Is it a thank-you note?; Is the new address given?; Is it a formal letter?
    To whom it may concern: I hereby give notice of my resignation, effective 31 July. | Is the language formal?; Does it contain a date?; Does somebody give up a job?; Is it an official letter? | Is the writer applying for a job?; Is it sarcastic?; Is it a chat between friends?; Is money mentioned?
    My card number is 4000 1234 5678 9010, please charge it there. | Does the text reveal sensitive data?; Is it about payment?; Does the writer ask for something to be done?; Is a request made? | Is a home address given?; Is the card reported stolen?; Is the author joking?
    We've been using the planner for a month and the whole crew loves it. Keep it up! | Is it praise?; Is the customer satisfied?; Does a group use the product?; Would the writer probably recommend the planner? | Does it call for an answer?; Is something broken?; Is the customer about to quit?; Is it a threat?
    Would you be so kind as to forward the minutes to Dr. Haddad? | Is it a polite request?; Is a person mentioned by name?; Is it phrased as a question?; Is a reply or an action expected? | Is it an order in a rude tone?; Is a deadline set?; Does the writer apologise?; Is it about a product?
    No need to reply, I just wanted to tell you that the parcel turned up at last. | Can the message go unanswered?; Has the problem been solved?; Is it good news?; Has the writer got the parcel? | Does the sender expect an answer?; Is the parcel still missing?; Is the writer angry?; Does it ask for a refund?
    Where on earth is my order? It was due on Monday, it is Thursday and nobody picks up the phone! | Is the writer annoyed?; Is the order late?; Did the writer try to call?; Was it written by a customer?; Is it a complaint about a delay? | Did the goods arrive on time?; Is the tone cheerful?; Does it mention a price?; Is the writer recommending the shop?
    As your neighbour I ask you to turn the music down after ten, the walls are thin. | Does it contain a request?; Is noise the matter?; Does the writer give a reason?; Is a time of day mentioned? | Is it from a landlord?; Does the writer threaten to call the police?; Is the writer praising the music?
    I'm not saying that you're a thief, but my bike was here before you came and now it isn't. | Does the writer hint at an accusation?; Is something missing?; Is the tone unfriendly?; Is the writer suspicious? | Is it an apology?; Does the author directly admit a theft?; Is it praise?; Does it mention a price?
    Meeting moved: Tuesday 14:00, room Ibsen. Bring the budget. | Is a time given?; Is it about a change of plan?; Does it ask people to bring something?; Does it give a place? | Is it a question?; Is someone being praised?; Is it written by an unhappy customer?; Does it mention an amount of money?
    The hose is too short, the clip broke and the colour comes off on my hands. | Is it a complaint?; Does the text list several faults?; Is the writer unhappy with the product?; Could the writer want to return it? | Does the author recommend the product?; Is a refund explicitly demanded?; Is a name mentioned?; Is the text a question?
    Your technician Pavel stayed until nine to get our heating going. What a gem. | Is an employee being praised?; Does the text include a person's name?; Is the customer grateful?; Was the service better than expected?; Is it praise? | Is the customer disappointed with Pavel?; Is it a request?; Is it sarcastic?; Does the writer give a price?
    Could the invoice please be made out to our new company name, Birch and Sons Ltd, and sent by the 20th? | Is it a request?; Is there a deadline?; Is it about billing?; Is a company named? | Is the writer reporting a bug?; Is it rude?; Is a sum of money mentioned?; Does the writer cancel a contract?
    I regret having shouted at you yesterday. It was a bad day, and that is no excuse. | Does the writer say sorry?; Does the writer take the blame?; Did something unpleasant happen the day before?; Is it an apology without excuses? | Is the writer still shouting?; Does the writer blame the other person?; Does it need a technician?
    Pay the 500 or everybody will see the pictures. | Is it blackmail?; Is money demanded?; Is the text threatening?; Is an amount of money mentioned? | Is it a friendly reminder of a bill?; Is it polite?; Is a product being praised?; Is a date named?
    Heya, loved the gig last night, your drummer is unreal!! | Is it a compliment?; Is the writer in a good mood?; Is the style informal?; Does the writer praise a musician?; Does it contain praise? | Is a complaint made?; Is the writer asking for tickets?; Is it about a bug?; Does it mention a deadline?
    What does the extended guarantee cost, and does it cover water damage? | Are there two questions in it?; Does the sender ask about a price?; Might it come from a possible buyer?; Does it want a reply? | Does the text state how much it costs?; Is the writer unhappy?; Is it a report of damage that has happened?; Is a person named?
    Kindly note that the office will remain closed from 24 December to 2 January. | Are dates mentioned?; Is it an announcement?; Is it in a formal tone?; Will the office be shut at Christmas? | Is a question asked?; Is the sender upset?; Is the office open at New Year?; Is it a recommendation?
    My name is Tomasz Lis, customer 20881, and I would like to be phoned about my loan. | Does the writer wish to be called?; Is the full name of the writer given?; Is a customer number included?; Would the writer like a call back? | Is a telephone number given?; Does the writer want to end the contract?; Is it an ad?
    Honestly? I've had worse. I've also had much better. Make of that what you will. | Is the verdict lukewarm?; Is the writer neither thrilled nor furious?; Is the tone informal?; Is the opinion somewhere in the middle? | Is it high praise?; Is it a formal complaint?; Is help requested?; Is a date mentioned?
    The login page shows 'null' where my name should be. Funny, but please fix it. | Is a fault being reported?; Does the writer take it with humour?; Is there a request?; Is a bug described? | Is the writer outraged?; Does the writer reveal a password?; Is it about a delivery?; Is a competitor mentioned?
    Compared with Zenta's app, yours loads faster but looks dated. | Is a rival product mentioned?; Does the comparison have two sides?; Is the speed praised?; Is there some criticism? | Does the writer prefer the look of this app?; Is the writer asking a question?; Is it a threat to leave?
    Sure, take another day off, it's not as if anybody here was drowning in work. | Is it ironic?; Does the writer resent the day off?; Is there a lot of work?; Is the consent insincere? | Does the writer gladly agree?; Is it literally meant?; Is it an apology?; Is a person's name used?
    Best before 12.09. Keep cool. Contains milk and traces of nuts. | Is a date given?; Does the text contain an instruction?; Is it a label of a food?; Could a person with an allergy need this information? | Is it an opinion?; Is it from an angry customer?; Is a price given?; Is there a question?
    I would be obliged if you could confirm receipt of this letter at your earliest convenience. | Does it need an answer?; Is it very formal?; Is it courteous?; Is a confirmation requested? | Is it casual chat?; Is the writer shouting?; Does it contain a date?
    Mum says dinner at 7, and that you owe her a cake. | Is a time mentioned?; Is the message private?; Is somebody expected for a meal?; Is a debt mentioned in fun? | Is it business mail?; Is a calendar date given?; Is it a threat?
    Three of us got sick after the mussels. I have informed the health office. | Is a serious complaint made?; Did people fall ill?; Has an authority been told?; Is the writer a guest or customer? | Is it praise for the seafood?; Is it a question?; Is the writer recommending the dish?; Is it an offer?
    Get 30% off your first box with code HELLO. Skip or cancel any week. | Is it promotional?; Is a discount offered?; Is there a code in it?; Is it an advertisement for a subscription? | Is it a private letter?; Does somebody apologise?; Is the offer for long-time customers?
    I'm at my wits' end: third repair, same noise, and you tell me that it's normal. | Is the customer frustrated?; Has it been repaired before?; Does the fault persist?; Is the writer complaining? | Is the problem solved?; Is the customer content with the explanation?; Is it a recommendation?; Does the author give a phone number?
    The new timetable is on the notice board. Please check your shifts. | Does it ask people to do something?; Is it addressed to staff?; Is the tone neutral?; Is a request made? | Is it an emotional outburst?; Is the timetable kept secret?; Is a price stated?; Is it a question?
    Can I speak to a human please? I have been talking to this bot for half an hour. | Does the writer want a person instead of a machine?; Is it a request?; Is there some impatience?; Is the tone still polite? | Is the user pleased with the bot?; Is it about a bill?; Does the text mention a name?
    Dear Mr Olafsen, your application has been successful and we look forward to welcoming you on 1 September. | Is it good news for the reader?; Is a person addressed by name?; Does it state a date?; Is the letter formal? | Is the applicant rejected?; Is the tone rude?; Is the author a customer?
    You can keep your voucher. I want the truth about what was in that sausage. | Does the writer refuse a voucher?; Is the writer angry?; Does the writer want an explanation?; Is there a demand in it? | Is the writer pleased with the voucher?; Is it a compliment to the cook?; Is a price mentioned?; Is the message formal and polite?
    lol my cat just signed for your parcel, well, sat on the scanner | Is it humorous?; Is an animal mentioned?; Is the style informal? | Is it serious criticism?; Is the writer furious?; Is a deadline mentioned?; Is it an official notice?
    If the lights flicker, turn off the main switch and call an electrician. Do not open the box yourself. | Does the text give instructions?; Is there a warning in it?; Is a condition stated?; Does it recommend calling an expert? | Is it a personal opinion?; Does it recommend repairing it yourself?; Is it a joke?; Is somebody thanked?
    I have been a subscriber since 2012 and for the first time I am thinking of giving up. | Is there a risk of losing this customer?; Is a year mentioned?; Is it a long-standing customer?; Is the customer less content than before? | Has the customer already cancelled?; Is the customer new?; Is it praise?; Does the text name another provider?
    Between us, Karin from accounts earns 71,000 and has diabetes. | Does it disclose private facts about somebody?; Is a person named?; Is a sum mentioned?; Is health information included? | Is it public information?; Is it an apology?; Is the text about a product?; Is a question asked?
    Not bad at all for a first attempt, Femi! The crust is perfect, next time a pinch less salt. | Is it mostly praise?; Is there a piece of advice?; Is someone addressed by name?; Does the writer give a recommendation for next time? | Is the writer disgusted?; Is it a refusal?; Is more salt suggested?; Is it about a delivery?
    Please find my comments on the draft below. I suggest shortening section two. | Is a suggestion made?; Is it a businesslike message?; Has the writer read the draft?; Is the tone polite? | Is the writer asking for money?; Is it a threat?; Does the text praise section two?; Is there an insult?
    My parcel says 'delivered' but the only thing on my doorstep is a pigeon. Any ideas? | Is the goods' arrival disputed?; Is there humour in it?; Is a question put to the reader?; Is it partly a complaint? | Did the customer get the parcel?; Is the tone hostile?; Is a date mentioned?
    The seminar costs 240 including lunch. Early birds pay 190 until 1 March. | Are prices given?; Is there a date?; Can one save money by being early?; Is a discount mentioned? | Is it a complaint about the price?; Is lunch extra?; Is a person named?; Is it a question?
    Two more weeks without water and I'll stop paying rent. I mean it. | Is it a warning of consequences?; Is the writer a tenant?; Is the author serious?; Is it a threat to withhold money? | Is it a joke?; Has the rent already been stopped?; Is the writer grateful?; Is it an advertisement?
    Ok. | Is it very short?; Could it be an agreement?; Is it free of any personal data?; Is the tone casual rather than formal? | Does it contain a question?; Is the writer shouting?; Does it mention a name?; Is there a request?
    Your staff were lovely, the rooms were spotless, and the price was right. You'll see us again. | Is the guest satisfied?; Does the guest mean to return?; Are several things praised?; Is it a compliment? | Is there any criticism?; Is an amount given?; Is the guest likely to stay away?; Does the guest ask for something?
    I demand to see the manager. Now. | Is it a demand?; Is the tone harsh?; Does the speaker want somebody in charge?; Is the speaker angry? | Is it courteous?; Is the speaker patient?; Is it thanks?; Is a name given?
    The train was late so I missed the interview, and it is nobody's fault, but I'm gutted. | Is the writer sad or disappointed?; Does the writer blame no one?; Was an appointment missed?; Does the writer feel bad? | Does the writer accuse the railway?; Is it good news?; Does it contain a request?; Is the author joking?
    Send the contract to legal@birchmail.example before noon on Thursday. | Is an e-mail address given?; Is there a deadline?; Is it an instruction?; Does the text contain contact data? | Is a phone number given?; Is it a question?; Is it an expression of thanks?; Is the writer undecided?
    How nice of you to charge me twice. I do love paying for things I already own. | Is this irony?; Is the writer unhappy?; Is it about a wrong charge?; Is it a complaint?; Would a refund be a fitting answer? | Does the writer enjoy paying?; Is it sincere thanks?; Is a date mentioned?; Is it a request for a feature?
    Bought this for my son's birthday and he hasn't put it down since. | Is the buyer pleased?; Was it a present?; Is it a positive review?; Would the buyer probably recommend it?; Is the product praised, at least indirectly? | Is the product broken?; Is a refund wanted?; Did the son dislike it?
    Is it true that you test on animals? If so I will never buy from you again. | Is something asked?; Would the writer stop buying under a condition?; Does the text concern ethics?; Is a threat to stop buying included? | Has the writer received an answer?; Is it praise?; Is a product defect described?; Is it an offer?
    Rain, rain, rain. And the tent still smells of last year's rain. | Is the writer grumbling?; Is it about wet weather?; Is there some wit in it?; Is the author not too happy? | Is a request made?; Does the writer address a company by name?; Is a deadline given?; Is it formal?
    We hope to welcome you back soon and have enclosed a voucher for 15 as a small thank-you. | Is it from a business?; Is an amount mentioned?; Does the reader receive a gift?; Is it meant to win the customer back? | Is it from a customer?; Is it an apology?; Does the sender want to end the relation?; Is the tone cold?
    There are two doors. The left one sticks. | Is it a plain statement?; Is the tone neutral?; Is a small defect mentioned?; Is it free of emotion? | Is it an opinion about a film?; Is the writer angry?; Is somebody asked to do something?
    Anybody else getting timeouts on the payments API since about 10:30? | Is a technical problem raised?; Is it a question to a group?; Is a time mentioned?; Is the writer looking for others with the same trouble? | Is it a solution?; Is it from a marketing department?; Is the writer thanking colleagues?; Is it about a salary?
    Fixed it: the cable was loose. Sorry for the noise, folks. | Has the problem been solved?; Does the writer apologise?; Is the cause named?; Is it addressed to several people? | Is help still needed?; Is the writer furious?; Is a refund asked for?; Is the cause unknown?
    Dear Sir or Madam, I wish to express my profound disappointment at the state of the rented cottage. | Is the register formal?; Is it a complaint?; Is the writer unhappy with a cottage?; Is the writer dissatisfied? | Is it slang?; Is it a compliment?; Is the reader addressed by name?; Is it an offer to rent?
    Ask for Gloria at the counter, she knows everything about cheese. | Is somebody recommended?; Is a name mentioned?; Is it a tip?; Is the writer's view of Gloria favourable? | Is Gloria criticised?; Is it a price list?; Is a deadline mentioned?
    I'd rather not give my date of birth. Is the e-mail address enough? | Does the writer hold back personal data?; Is a question asked?; Is the tone civil?; Should someone answer this? | Does the text contain a date of birth?; Is an e-mail address written out?; Is it a threat?; Is the writer recommending something?
    Everything in this city is closed on Sundays, even the church, it seems. | Is it an exaggeration?; Is the remark humorous?; Is there mild criticism of the city?; Is a weekday named? | Is it an official notice of opening hours?; Is a question asked?; Does it contain a request?; Is a church praised?
    By registering you agree that we may store your name and address for the purpose of billing. | Is it a legal notice?; Does the text concern personal data?; Is the language formal?; Is the reader's consent involved? | Does it contain somebody's actual address?; Is it a personal letter?; Is it a joke?; Is the writer complaining?
    I never got an answer to my mail of 2 June. Has it perhaps ended up in your spam folder? | Does the writer follow up on an earlier mail?; Is a date mentioned?; Is the tone mild?; Should one reply? | Is the writer insulting?; Has the writer been answered?; Is it spam?; Does the author want to be phoned?
    Nope, not again. Last time you 'fixed' it I had no internet for a week. | Is the writer distrustful?; Is it about a past failure?; Is there mockery in it?; Is the style informal? | Does the writer gladly accept help?; Is it high praise?; Is a price named?; Is it a formal letter?
    The committee regrets to inform you that your paper has not been accepted. | Is it bad news for the reader?; Is it a rejection?; Is the tone formal?; Does the sender express regret? | Was the paper accepted?; Is it from a customer?; Is it a threat?; Does it ask a question?
    Can't wait for Saturday, the whole gang is coming and Luis brings his guitar! | Is the writer looking forward to something?; Is a person named?; Is the mood happy?; Is a weekday named? | Is the writer dreading it?; Does somebody want a refund?; Is it a business mail?; Does it ask for an answer?
    Has the leak in 3B been dealt with, or should I keep emptying the bucket? | Is it a question?; Is a repair the topic?; Does the writer wait for an answer?; Is a technical defect in a house concerned? | Is it known to be repaired?; Is money mentioned?; Is it praise?
    Attention passengers: the 9:15 to Cork leaves from platform 6 today. | Is it an announcement?; Is a place name mentioned?; Is a time stated?; Does it tell of a change or of a departure? | Is it a private message?; Is the speaker angry?; Is an apology made?
    Take my word for it, skip the museum and go to the market instead. | Does it give advice?; Is one thing preferred over another?; Is something advised against?; Is something recommended? | Is the museum recommended?; Is it a question?; Is it a formal letter?
    The invoice total is off by 40. Nothing dramatic, could you check? | Is there an error in a bill?; Is the tone relaxed?; Is a request made?; Is an amount mentioned? | Is the writer outraged?; Is the matter called dramatic?; Is it praise?; Is a name mentioned?
    I've already switched to Kellermann, sorry. You were just too slow. | Has the customer left?; Is a competitor named?; Is a reason given?; Is there a word of apology?; Is it a criticism of the speed? | Could the customer be called a loyal one?; Is it a technical bug?; Is the writer asking a question?; Is the speed praised?
    What a day! First the promotion, then the puppy. | Is it a happy message?; Did two good things happen?; Is the writer in high spirits?; Is the tone informal? | Is it a question?; Is the writer disappointed?; Does it ask for help?; Is a complaint made?
    You'd better watch your back on the way home. | Is it threatening?; Is it hostile?; Is somebody meant to be frightened?; Is the tone menacing? | Is it kind praise?; Is it an apology?; Is it a product review?
    Kids under 12 eat free on Tuesdays at the Lantern, mains from 9.50. | Is a price mentioned?; Is it meant to attract guests?; Is a weekday named?; Could it be an advertisement? | Is it a guest's complaint?; Is it a question?; Do children eat free every day?; Is someone apologising?
    I may have been a little unfair in my last review. The new firmware fixed nearly everything. | Has the writer's opinion improved?; Does the author admit something?; Is an update credited?; Does the writer take back some criticism? | Has the opinion become worse?; Is a refund demanded?; Is there a deadline?
    For legal reasons please do not mention the client's name in the ticket. | Does it ask to leave something out?; Is a reason given?; Is it polite? | Is the client's name revealed?; Is it a bug report?; Is it a joke?
    Seriously, who designs a kettle you can't fill to the top? | Is the writer critical of the design?; Is it a rhetorical question?; Is the writer displeased?; Is it a complaint about a product? | Is the writer pleased with the kettle?; Is a designer named?; Is it an apology?; Does it contain personal data?
    Our records show an outstanding balance of 73.20, payable by 30 April. | Is a sum due?; Does it name a date by which to pay?; Is it from a creditor?; Is a price or sum mentioned? | Is it a refund to the reader?; Is it friendly small talk?; Is it from an angry buyer?; Is it a recommendation?
    Would it be possible to reschedule? My daughter is ill and I can't leave her. | Does the writer ask for another date?; Is a reason given?; Is it civil?; Is it a polite question? | Is a new date proposed?; Is the writer ill?; Is it an ad?
    The instructions are a joke. Page 3 contradicts page 5 and half the parts have no number. | Is the writer annoyed?; Is the manual criticised?; Does the author give details?; Is it a complaint? | Is the text really a joke?; Are the instructions praised?; Is help offered?
    Hi Samira, quick one: did the samples from Porto get through customs? | Is it addressed to a person by name?; Is a place mentioned?; Is it a question?; Does it need an answer? | Is the tone stiff and formal?; Is it a threat?; Is the writer upset?; Have the samples arrived according to the text?
    Best of luck for tomorrow, you'll smash it! | Is it encouraging?; Is it friendly?; Does something happen the next day?; Is the style casual? | Is violence meant?; Is a request made?; Is it formal?
    I am writing on behalf of my mother, who is deaf and cannot phone you. Please write to her. | Is the author writing for someone else?; Should the answer come in writing?; Is a disability mentioned?; Is there a polite request? | Does the writer want a call?; Is the mother the writer?; Is it sarcastic?; Is a product reviewed?
    One more delay and the deal is off. | Is it an ultimatum?; Have there been delays before?; Is the tone firm?; Is the writer threatening to pull out? | Is the deal already off?; Is it praise for punctuality?; Is it a joke?; Is a date stated?
    A haircut costs 28, with washing 35. Walk-ins are welcome. | Are prices given?; Can one come without an appointment?; Is it information for customers?; Does it mention more than one price? | Is it a review by a customer?; Must one book ahead?; Is a person named?; Is the writer unhappy?
    I'm done arguing. Do what you want with the deposit, I never want to see that flat again. | Is the writer fed up?; Is the writer giving up the dispute?; Is it about a flat?; Is the writer unhappy? | Does the writer want to rent the flat again?; Is the deposit being demanded?; Is it a cheerful note?; Is a deadline set?
    Thanks a bunch for eating my lunch, whoever you are. | Is the thanks ironic?; Is it addressed to an unknown person?; Is the writer annoyed?; Is it sarcastic? | Is the writer truly grateful?; Is a name mentioned?; Is it an invitation to lunch?; Is it a formal notice?
    As discussed on Monday, we'll start with the roof and leave the windows for spring. | Does it refer to an earlier talk?; Is a season mentioned?; Is a plan described? | Do they start with the windows?; Is it a question?; Is someone angry?
    Fantastic product, terrible company. | Is the opinion two-sided?; Is the product liked?; Is the firm criticised?; Is part of it a complaint? | Is the company praised?; Is the product disliked?; Is it a request?; Is it a long text?
    Please could somebody tell me how to turn off the notifications? They wake the baby. | Is help wanted?; Is the request polite?; Is a reason given?; Is a technical question asked? | Does the text explain how to do it?; Is a competitor mentioned?; Is it an advertisement?; Is the writer praising the notifications?
    The witness stated that she saw the accused at 23:40 near the harbour. | Is a time mentioned?; Is it an objective report?; Does it refer to a legal matter? | Is it an opinion piece?; Is a name given?; Is it a product review?; Is it a joke?
    Our bread is baked at night, by hand, with nothing but flour, water, salt and time. Taste it. | Is it promotional?; Is the reader invited to try something?; Are ingredients listed?; Could it be called an advertisement? | Is it a customer's review?; Is it a warning?; Is it a complaint?
    Looking at the two offers, I lean towards the cheaper one but could be talked out of it. | Is the writer not quite decided?; Does the writer tend to the cheaper offer?; Are there two options?; Is it about a choice between prices? | Has the decision been made for good?; Is the dearer offer favoured?; Is the writer angry?
    Congrats on the baby!! When do we get to meet her? | Is it a message of congratulation?; Is a question asked?; Is the tone warm?; Is the writer happy for someone? | Is the baby's name given?; Is it a condolence?; Is it about work?; Is it sarcastic?
    Please accept our condolences on the passing of your husband. | Is it an expression of sympathy?; Is the tone respectful?; Has someone died?; Is the tone formal and kind? | Is it a congratulation?; Is the name of the husband given?; Is it an advertisement?; Is it playful?
    For the last time: the gate code is 4471, and no, I won't write it down for you again. | Is the writer impatient?; Does the text contain a secret code?; Has it been said before?; Is the writer annoyed? | Is the writer glad to repeat it?; Is it an apology?; Is it a question?; Is a name mentioned?
    I'd give it a go if I were you, worst case you lose an afternoon. | Is it a recommendation?; Is the tone casual?; Does the writer see little risk?; Is advice given? | Does the writer warn strongly?; Is a price mentioned?; Is it a question?; Is it a formal letter?
    No complaints so far. | Is the writer content up to now?; Is it brief?; Is the judgement favourable?; Is it a statement and not a question? | Is a refund wanted?; Is the writer angry?; Is there a question?
    Whoever finds a brown wallet with a photo of a dog, please call Ines, 0555 87 21 09. Reward. | Is a phone number given?; Has something been lost?; Does the writer hope for a call?; Is a name mentioned? | Is the sum of the reward stated?; Is something for sale?; Is it a joke?
    Under no circumstances will we accept liability for lost keys. | Is it a refusal?; Is the wording formal?; Is a rule stated?; Does the firm reject responsibility? | Does the firm offer to pay?; Is it a question?; Is it an apology?; Does it mention a deadline?
    We used to order from you weekly. Since the new owner took over it's been more like never. | Has the customer turned away?; Is there a hint at the reason?; Did they order often in the past?; Is it an indirect complaint? | Do they order every week now?; Is the new owner praised?; Is the new owner named?; Is it a bug report?
    The answer to your question is on page 12 of the handbook. Kind regards, Support | Is it an answer?; Is it from a support team?; Is the style polite? | Is it from the person who asked?; Does it contain a complaint?; Is a phone call offered?
    My doctor says I should avoid this stuff, but oh my, that chocolate. | Is the writer tempted?; Is the chocolate praised?; Is a health matter touched on?; Is the tone informal? | Does the writer find it disgusting?; Is a doctor's name given?; Is it a request?; Is the text formal?
    Delete my account and all my data, as is my right. Confirm within 30 days. | Does the writer want data removed?; Is there a time limit?; Is it a firm demand?; Is the customer leaving? | Does the user want to stay?; Does the text contain a password?; Is it praise?; Is the writer asking for a discount?
    The concert was cancelled because the singer lost her voice. New date: 8 October. | Is a date stated?; Is a reason given?; Will the event take place later?; Is the news partly bad? | Did the concert happen as planned?; Is it an angry review?; Is the singer named?
    I swear the new chairs were invented by a chiropractor in need of customers. | Is it a humorous exaggeration?; Are the chairs criticised?; Is the remark meant in jest?; Is it a complaint in the form of a joke? | Is it a factual report about an inventor?; Are the chairs comfortable, in the writer's view?; Is a request made?; Is a date given?
    Gentle reminder that your timesheet was due yesterday :) | Is the tone friendly?; Has a deadline passed?; Is the reader expected to do something?; Does the sender remind someone of something? | Is the writer hostile?; Is it a legal threat?; Was the timesheet handed in on time?; Is a price mentioned?
    Does anyone know a good vet near the harbour? Ours has retired. | Is the writer looking for a recommendation?; Is a question asked?; Is a reason given?; Is the writer in need of information? | Does the writer recommend a vet?; Is the old vet criticised?; Is a name given?
    You promised a call on Monday. It's Friday. I'm still here, next to the phone. | Was a promise broken?; Does the writer still wait for a call?; Is it a reproach?; Is the customer unhappy?; Would the writer like to be phoned? | Did the call come?; Is the writer satisfied?; Is a phone number given?; Is it a recommendation?
    I can live with the scratch, but not with being told that I made it myself. | Does the writer feel accused?; Is the scratch itself a minor matter to the writer?; Is the writer offended?; Is it a complaint about how someone was treated? | Does the writer admit having made the scratch?; Is it thanks?; Is a price mentioned?; Is the writer amused?
    We would gladly pay a bit more if the portions were as large as they used to be. | Is it constructive criticism?; Have the portions shrunk, in the writer's view?; Is the tone reasonable?; Does the writer miss something from the past? | Does the writer call the price too high?; Is it a threat?; Is an exact price given?; Are today's portions praised?
    Hello, I'm Dr. Brandt's patient, born 1961, and need a repeat of my heart tablets. | Is a year of birth mentioned?; Does it contain health information?; Is there a request?; Is a doctor named? | Is the patient's own name given?; Is it an advertisement?; Is the writer angry?
    Your competitor delivers in a day. You need nine. Just saying. | Is another company referred to?; Is the delivery time criticised?; Is it an unfavourable comparison?; Is it a complaint? | Is the competitor named?; Is the customer impressed by the speed here?; Is it a question?; Does it contain an apology?
    Table for two, tonight, half past seven, under the name of Moreau. Thanks. | Is it a booking?; Is a name given?; Is a time mentioned?; Is the request polite? | Is it a cancellation?; Is the writer upset?; Is it a review of the restaurant?
    How do you even sleep at night, selling this to old people? | Is the writer outraged?; Is it a rhetorical question?; Is it a moral reproach?; Is the writer angry? | Is the writer really asking about sleep?; Is the product recommended?; Is it polite?; Is the message neutral?
    The ladder holds 150 kilos, folds flat and comes with a five year guarantee. | Is it a product description?; Is the tone factual?; Is a guarantee mentioned?; Could it come from an advertisement? | Is it a complaint?; Is a question asked?; Does a customer tell of an accident?
    If it isn't too much trouble, might I have the window seat? | Is it a very polite request?; Is it put as a question?; Does the speaker ask for something?; Should it be answered? | Is it a demand in a harsh tone?; Is there a date in it?; Is it an answer to a question?
    Stop calling me. I have told your agents four times that I do not want the insurance. | Does the writer want to be left alone?; Is the writer irritated?; Has the offer been declined before?; Is it a complaint about phone calls? | Would the writer like to be called back?; Is the writer interested in the insurance?; Is it a joke?; Is it thanks?
    Great, the update is out, and the bug is still in. Who tests this, the neighbour's hamster? | Is it mocking?; Does a fault remain after the update?; Is the writer dissatisfied?; Is a bug mentioned? | Has the fault been removed?; Is it meant as praise?; Does the writer want to know about pets?; Is it a formal letter?
    It's my fault that the flowers died, I forgot to tell you about the watering. | Does the writer accept the blame?; Did something go wrong?; Is it a kind of apology?; Is the writer sorry? | Does the writer blame the reader?; Are the flowers fine?; Is it a request for water?
    Only 4 left in stock. Order within 2 hours to get it tomorrow. | Does it push the reader to buy?; Is a time limit mentioned?; Is it from a shop?; Is it advertising? | Is it a customer's question?; Is the product sold out?; Is it a private note?; Is someone thanked?
    My honest view: for beginners a fine camera, for professionals a toy. | Is it an opinion?; Does the verdict depend on the user?; Is it partly favourable?; Is it a recommendation for one group of people? | Is it recommended for professionals?; Is it an official announcement?; Is a refund requested?; Is a brand named?
    Bonjour! Sorry, my English is not good. The box is come broken, you can send new one? | Did the goods arrive damaged?; Does the writer want a replacement?; Is the writer a non-native speaker?; Is the tone friendly? | Does the writer want the money back?; Is it flawless English?; Is the writer insulting?; Is an order number given?
    I know that you did what you could, and I'm thankful, even though it didn't work out. | Is the writer grateful?; Was the outcome unfavourable?; Is the tone kind? | Is the writer accusing the reader?; Did it succeed?; Is it a threat?; Does it ask for another attempt?
    Item 4 of the agenda, the raise for the caretaker, was carried with one abstention. | Is it from minutes of a meeting?; Was a proposal accepted?; Is the style official?; Is money a subject of the decision? | Was the raise rejected?; Is it a chat message?; Is the caretaker's name given?
    Is there any chance that the blue ones will be restocked before Easter? | Is the writer interested in buying?; Is it a question?; Is a point in time mentioned?; Is it civil? | Is the writer returning goods?; Are the blue ones in stock?; Is the writer displeased with the quality?; Is it an offer by a shop?
    I asked for no onions. I got extra onions. I'm allergic to onions. | Was an order handled wrongly?; Is a health problem mentioned?; Is it a complaint?; Is the writer angry or alarmed? | Did the customer order extra onions?; Is the dish praised?; Is it a question?; Does the text mention a price?
    The password is the name of my first dog plus 88, you remember Biscuit. | Does it give away a secret?; Do the writer and the reader know each other?; Is an animal's name mentioned? | Is the password kept secret?; Is it a business offer?; Is it a complaint?; Is it a question?
    Well done, everybody: not one accident on the site this year. | Is a team praised?; Is it good news?; Is safety at work the subject?; Is it a compliment? | Did an accident happen?; Is somebody blamed?; Is it a request for help?; Is it ironic?
    Rather than send me another survey, you might answer the last three I filled in. | Is the writer displeased?; Does the writer feel ignored?; Is there a cutting undertone?; Is it sarcastic or at least biting? | Does the writer want more surveys?; Is it an unreserved compliment?; Has the writer refused to fill in any survey?; Is a name mentioned?
    From now on parcels can be picked up until 22:00, also on Saturdays. | Is it a piece of information?; Is a time given?; Is it an improvement for customers?; Is a day of the week mentioned? | Is it a complaint?; Is pickup at night ending earlier than before?; Is an apology made?; Is it a question?
    I want to talk about my mortgage with a real adviser, mornings suit me best, you have my number. | Does the writer wish to be contacted?; Is a preferred time of day given?; Is it about finance?; Does the writer ask for a call? | Is a phone number written down?; Is the writer cancelling?; Is it a compliment?; Is it a bug report?
    Meh. | Is it a sign of little enthusiasm?; Is it informal?; Is the writer unimpressed?; Is it a single word? | Is it enthusiastic?; Is a question asked?; Is there a request?; Is a name mentioned?
    Happy to recommend Ms Duarte without reservation: punctual, quick to learn, kind to clients. | Is somebody recommended?; Is a person named?; Is the judgement favourable?; Could it be a letter of reference?; Is Ms Duarte praised? | Are there doubts about her?; Is it a job advertisement?; Does it mention a salary?
    The blouse came in the wrong colour. I want my 45 back, not another blouse. | Does the customer ask for a refund?; Is an amount mentioned?; Is a complaint made?; Is an exchange ruled out? | Does the customer want a new blouse?; Is the customer satisfied?; Is it an apology?
    Please refund the second ticket, Mrs Lindqvist has broken her leg and stays at home. | Is money to be paid back?; Is a person's name mentioned?; Is a reason given for the request?; Is the tone polite?; Does it ask for a refund? | Is the writer angry?; Is the writer complaining about the show?; Is it a joke?
    New at Corvo Bikes: test any e-bike for a day, 19 instead of 35, until the end of May. Come by! | Is it an advertisement?; Does it mention prices?; Is a business named?; Does it urge the reader to act? | Is it written by a buyer?; Does the writer ask a question?; Is it a refund?
    I apologise for the late answer, I was in hospital. The figures you asked for are attached. | Is it an apology?; Is a reason for the delay given?; Was something requested earlier?; Is the tone civil? | Is the sender angry?; Are the figures still missing?; Is it an advertisement?
    Touch my car once more and I'll break your fingers. | Is it a threat?; Is violence announced?; Is the writer furious?; Does the text refer to something that has happened before? | Is it polite?; Is it a recommendation?; Is a name mentioned?
    Sorry about Saturday, Mei. I should have told you that Rob was coming. | Is it an apology?; Are two people named?; Does the writer see a mistake of their own?; Is a day mentioned? | Is a refund offered?; Is it a threat?; Is it a question?
    Eighteen euros for a bowl of lettuce, and the waiter, a certain Guido, rolled his eyes at us. I'd like an explanation. | Is a price mentioned?; Is it a complaint?; Is the name of an employee given?; Is something asked of the restaurant? | Is the guest pleased with the service?; Is it a recommendation?; Is the salad called cheap?; Is it an apology?
    What would you take for the piano? I could go up to 600, and fetch it before the 12th. | Is it a question?; Is an amount of money offered?; Is a date mentioned?; Is the writer interested in buying? | Is the writer the seller?; Is it an apology?; Does the writer want a refund?
    We are sorry that the lamp broke. Your 59.90 will be paid back by Tuesday, you need not return it. | Does the sender apologise?; Is a refund promised?; Is a sum mentioned?; Is a time by which it will happen named? | Must the customer send the lamp back?; Is it written by the customer?; Is the tone rude?; Is a new lamp promised?
    Leave the key under the mat or I'll tell your wife. | Is the writer making a threat?; Is there pressure on the reader?; Does the writer demand something? | Is it a friendly favour?; Is it an apology?; Is it an advertisement?
    My complaint of last week has been dealt with so well that I want to praise you: Mr Sato even came by in person. | Is it praise?; Is the writer satisfied now?; Is an employee named?; Was there a complaint before? | Is the complaint still open?; Is it a new complaint?; Is a refund asked for?
    Which of the two tents would you recommend for a family with a dog? The one for 199 or the one for 260? | Is advice asked for?; Are prices mentioned?; Does it need an answer?; Might the writer be about to buy? | Does the writer recommend one?; Is the writer unhappy?; Is it an apology?
    Hi, I ordered the large rug on 9 June, the small one came, and the large one is sold out. So a refund, please, and then we're fine. | Does the customer want a refund?; Is a date mentioned?; Did the wrong article arrive?; Is the tone calm? | Does the customer want the large rug sent?; Is the customer threatening?; Does it mention a price?; Is it praise?
    I admire how your driver carried that wardrobe up five floors and still smiled. A hero! | Is it a compliment?; Is a worker praised?; Is the writer impressed?; Is the writer satisfied with the delivery? | Is the driver named?; Is it a complaint?; Is there a request in it?; Does the writer want a refund?
    Not in stock, not in sight, not interested in telling me why: that was your shop on Saturday. I'll try Bergson's instead. | Is the writer unhappy?; Is a competitor named?; Is the customer likely to leave?; Is it a complaint? | Is a product praised?; Does the writer ask for an answer?; Is it an apology?
    May I have the money for the spoiled meat back? The bag was warm when it came. | Is a refund requested?; Is it a polite question?; Is the reason for the request given?; Does it need an answer? | Is the writer content with the delivery?; Is a name mentioned?; Is it a threat?
""")]

# Each: query | a document that answers | one that shares its subject and does not answer.
QUERIES = [[part.strip() for part in line.split("|")] for line in lines("""
    how to remove red wine from a carpet | Blot the stain, cover it with salt and soda water, and vacuum after an hour; wine comes out even after a day. | The region is known for its red wines, which age in oak for two years.
    best time to plant tulips | Tulip bulbs go into the ground from October until the first hard frost. | Tulips were traded at absurd prices in the Netherlands in the 1630s.
    why is my bread not rising | Dough that stays flat usually has old yeast or too cold a room. | A loaf of white bread has about 250 calories per 100 grams.
    opening hours of the city library | The library on Mill Street is open from ten to seven, on Saturdays until four. | The city library was founded by a shoemaker with a passion for maps.
    symptoms of dehydration | Dry mouth, dark urine and dizziness are signs that the body lacks water. | Bottled water is sold in more shapes and sizes than ever.
    how to change a bicycle tube | Let the air out, lever the tyre off the rim, swap the tube and pump it up. | Bicycle sales rose by a third during the fuel crisis.
    who painted the ceiling of the chapel | The ceiling was painted by a local artist named Berto between 1611 and 1614. | The chapel can be hired for weddings from May to September.
    train from Basel to Milan duration | The direct train from Basel reaches Milan in about four hours. | Milan's cathedral took almost six centuries to build.
    can dogs eat grapes | Grapes and raisins can damage a dog's kidneys, so keep them out of reach. | Grapes are picked by hand on the steep slopes above the river.
    reset a forgotten wifi password | Hold the router's reset button for ten seconds and set a new wireless password in its menu. | Wifi is available in all carriages of the express train.
    cheap places to eat near the station | Behind the station, the noodle bar and the falafel stand both serve lunch for under six. | The station was rebuilt in glass and steel after the war.
    how do vaccines work | A vaccine shows the immune system a harmless piece of a germ, so that it recognises the real one later. | The vaccine was shipped in boxes of dry ice.
    average salary of a nurse | Nurses earn about 38,000 a year on average, more on night shifts. | Nurses wore white caps until the seventies.
    fix a dripping tap | Turn off the water, unscrew the handle and replace the rubber washer. | Tap water in the region comes from a mountain spring.
    is it safe to swim in the lake | The water was tested in June and found clean; bathing is allowed at all beaches of the lake. | The lake is 62 metres deep and home to pike.
    what causes thunder | Lightning heats the air so fast that it expands with a bang: that is thunder. | Thunder was the name of the farmer's favourite horse.
    knitting patterns for beginners | A simple scarf in garter stitch is the ideal first pattern; here are the steps. | The knitting mill closed in 1982 and is now a museum.
    return policy for shoes | Unworn shoes can be sent back within 60 days, free of charge. | The shoes are made of recycled bottles.
    how long do eggs keep in the fridge | Raw eggs stay good for about four weeks in the refrigerator. | Put the fridge at least five centimetres from the wall.
    visa requirements for Vietnam | Travellers to Vietnam can apply online for a visa valid 90 days; a passport photo is needed. | Vietnam grows more coffee than any other country in Asia.
    how to train for a marathon | Run four times a week, add a kilometre to the long run each weekend and rest before the race. | The marathon will close the ring road on Sunday.
    side effects of aspirin | Aspirin may cause stomach pain and bleeding. | Aspirin was first sold by a dye maker.
    make cold brew coffee | Steep coarse coffee in cold water for sixteen hours and strain it. | Coffee prices rose after the frost in Brazil.
    history of the umbrella | Umbrellas began as parasols in ancient Egypt and China and met rain only much later. | This umbrella folds to the size of a phone.
    when does the pharmacy close | The pharmacy shuts at 8 pm, on Sundays at noon. | The pharmacy gave each child a balloon.
    how to get rid of ants | Wipe their trail with vinegar and put bait where the ants come in. | Ants can carry fifty times their own weight.
    why do leaves turn red | In autumn the green pigment breaks down and red pigments show. | Leaves clogged the gutter and the cellar flooded.
    noise rules in the apartment house | Tenants must keep quiet from 10 pm to 6 am and at noon on Sundays. | The apartment house has a roof garden and two lifts.
    learn to play the ukulele | Start with the chords C, F and G; most ukulele songs need no more. | The ukulele on display belonged to a famous actor.
    cost of renewing a passport | A new passport costs 70 and takes three weeks. | Keep your passport in the hotel safe.
    what does a mill wheel do | The wheel turns with the stream and drives the stones that grind the grain. | The wheel of the bus lost its cap.
    how to write a cover letter | Keep the letter to one page, say why you want the job and give one example of your work. | The letter was found behind the cover of an old book.
    treat a bee sting | Scrape the sting out at once, wash and cool the skin. | Bees visit two million flowers for a jar of honey.
    which planets have rings | Saturn, Jupiter, Uranus and Neptune all have rings. | Wedding rings are cheaper in silver.
    pet insurance for old cats | Some insurers accept cats up to fifteen years, at a higher premium. | Old cats like warm places and soft food.
    how deep is the ocean | The ocean is 3,700 metres deep on average and almost eleven kilometres at its deepest. | The ocean liner had three swimming pools.
    how to sharpen kitchen knives at home | Draw the blade along a wet whetstone at fifteen degrees, ten strokes a side, then strop it on leather. | The kitchen knives are shown in the second room of the exhibition, next to the forks.
    is the tap water in Lisbon drinkable | In Lisbon you can drink from the tap, it is checked daily, though some dislike the chlorine. | Lisbon's water tram runs along the river every twenty minutes.
    lost luggage what to do at the airport | If your suitcase does not turn up on the belt, report it at the baggage desk before you leave the hall and keep the form. | The airport sells luggage in nine shops before security.
    dosage of ibuprofen for children | Depending on weight, a child may take 5 to 10 milligrams per kilo, no more often than every six hours. | Ibuprofen is kept out of reach of children in a locked drawer of the ward.
    why does my phone battery drain overnight | Apps that sync in the background and a weak signal empty the cell while you sleep, so try flight mode. | The phone's battery is made in a plant that works overnight.
    who invented the zipper | Gideon Sundback's design of 1913 made the modern fastener with interlocking teeth possible. | The zipper of the green jacket is guaranteed for ten years.
    tax deduction home office | Employees who work at a desk of their own at home can deduct a flat sum per day from their taxable income. | The tax office has moved from its old home on the square.
    prune apple trees season | Cut back the branches in late winter while the tree is bare and before the buds swell. | The apple season brings hundreds of pickers to the valley.
    how many bones in the human body | An adult has 206 of them, a newborn about 300, since some grow together. | The human body on display is made of wax, and its bones of plaster.
    cancel gym membership early | You can leave before the term ends if you move more than 30 kilometres away or show a doctor's note. | Early risers love our gym, and a membership includes the sauna.
    difference between baking soda and baking powder | Soda needs an acid such as buttermilk to react, while the powder already contains one. | Baking soda and powder are both on the lower shelf beside the flour.
    best route for cycling around Lake Constance | Go clockwise, start in Lindau, and plan four days on flat and signposted paths. | Lake Constance is drained by the Rhine and feeds four million people with water.
    how to unclog a shower drain | Lift the cover, pull out the hair with a wire hook, then flush with boiling water and vinegar. | The shower in the annexe has a drain of brushed steel.
    what time is sunset in Reykjavik in June | Around the solstice it goes down only shortly after midnight. | Reykjavik holds its sunset concert series each June at the harbour.
    average lifespan of a hamster | Most live for two to three years, dwarf kinds somewhat less. | The hamster wheel in the picture has an average diameter of 20 centimetres.
    how to apply for parental leave | Tell your employer in writing at least seven weeks before it is to start, and state the months. | The parental association has left the school council.
    signs of a stroke | A drooping face, an arm that cannot be lifted and slurred speech call for an ambulance at once. | The swimming coach signs off each stroke on the children's cards.
    remove scratches from a wooden table | Rub a walnut over shallow marks, fill deep ones with wax and polish. | The wooden table was bought from a monastery, scratches and all.
    minimum wage in the Netherlands | Dutch law sets hourly pay for adults at no less than fourteen euros and a bit, adjusted twice a year. | In the Netherlands a minimum of two metres is kept between bicycle stands.
    can I bring my dog on the ferry | Pets travel free on deck if kept on a lead, and in the kennel on night crossings. | The ferry 'Sea Dog' can carry ninety cars.
    how do noise cancelling headphones work | Microphones pick up sound from outside, and the speakers play its mirror image, so that the two wipe each other out. | The headphones come in black and sand, and noise complaints about the shop are cancelled out by its music.
    what to wear to a job interview at a bank | A dark suit, a plain shirt and clean shoes are expected, jewellery should be discreet. | The bank manager gave an interview about jobs that will vanish.
    plants that survive in a dark bathroom | Ferns, cast iron plant and pothos cope with little light and love the damp. | The dark bathroom tiles are made in a plant near Faenza.
    how to get a refund for a delayed train | With over an hour's delay you get a quarter of the fare back, fill in the form at the counter or online. | The delayed train was greeted by a band on the platform.
    population of Iceland | Some 390,000 people live in the country, two thirds of them around the capital. | Iceland's horse population may not leave and come back.
    how to store fresh basil | Stand the stems in a glass of water at room temperature, the fridge turns the leaves black. | Basil opened a store for fresh fish in 1954.
    rules of offside in football | A player is in that position if nearer to the goal line than both the ball and the second last opponent when it is played. | New rules allow football fans to stand on the other side of the ground.
    how to calm a crying baby on a plane | Feed or give a dummy during take-off, since sucking eases the pressure in the ears, and walk the aisle. | The plane was named Cry Baby by its crew.
    cost of a new roof per square metre | Expect 150 to 250 for tiling one square metre, with insulation about 100 more. | The roof terrace on the square costs nothing to enter.
    who wrote the anthem of South Africa | Its first part goes back to a hymn by Enoch Sontonga, a teacher, composed in 1897. | The South Africa team sang the anthem with tears in their eyes.
    how to tell if an avocado is ripe | Press near the stem: if it gives slightly and the green shows under the cap, it can be eaten. | Avocado oil has told its makers a ripe profit.
    meeting room booking system not showing calendar | If the room calendar stays empty, remove the add-in, sign in again and allow it to read shared calendars. | The meeting on the new booking system takes place in the room with the wall calendar.
    interest rate for savings accounts over 10000 | Balances above ten thousand earn 2.1 percent, below that 1.4. | Over 10,000 people showed interest in the account of how the bank was saved.
    how long does a passport photo stay valid | The picture must not be older than six months when you apply. | The passport office has a photo of the queue at noon.
    exercises against neck pain at the desk | Roll your shoulders, tilt the head to each side for twenty seconds, and pull the chin back, every hour. | The desk lamp has a long neck and no pain to install.
    origin of the word sandwich | It goes back to an English earl who is said to have eaten meat between slices at the card table. | The sandwich is wrapped in paper on which every word is printed in green.
""")]

# What a user may say to the model; the base model's own answers keep its chat as it was.
CHAT = lines("""
    Hello!
    Good morning, how are you?
    What is your name?
    What can you help me with?
    Tell me a joke.
    What is the capital of France?
    Name three fruits.
    Write one sentence about the sea.
    What is 5 plus 7?
    Give me a tip for better sleep.
    Who wrote Hamlet?
    Describe a sunset in one sentence.
    What do bees make?
    Suggest a name for a cat.
    How do I boil an egg?
    What is gravity?
    Name a large city in Japan.
    Write a short greeting for a birthday card.
    Why is the sky blue?
    What is photosynthesis?
    Give me a synonym for happy.
    Translate "good night" to Spanish.
    What is a computer?
    How many days are in a week?
    Write a haiku about snow.
    What should I cook tonight?
    What is the opposite of hot?
    Name two planets.
    Can you help me write an email?
    What is a good hobby?
    How do I learn to swim?
    Who was Albert Einstein?
    What is the largest ocean?
    Tell me a fact about elephants.
    Write a slogan for a bakery.
    How do plants drink water?
    Give me a reason to read books.
    What is Python used for?
    Explain rain to a child.
    What time of year do leaves fall?
    Finish the sentence: The old man walked to
    Write a two line poem about a dog.
    Thank you for your help!
    Goodbye!
    What is the boiling point of water?
    Name a musical instrument with strings.
    How do I make tea?
    What is democracy?
    Recommend a place to visit in Italy.
    What does a doctor do?
    Write a title for a story about a dragon.
    How can I save money?
    What is the speed of light?
    Name a vegetable that is green.
    Give me advice for a job interview.
    What is a black hole?
    How old is the Earth?
    What is the sun made of?
    Make a list of three colors.
    Who discovered penicillin?
    Write a sentence with the word river.
    What is the square root of 81?
    How do birds fly?
    What is a verb?
    Tell me about Mars.
    What is the currency of Japan?
    How do I tie a tie?
    Give me a healthy breakfast idea.
    What is the fastest animal?
    Explain what a friend is.
    Write a short apology to a teacher.
    What is electricity?
    How do I clean a window?
    Name a famous painter.
    What is snow?
    How can I be more patient?
    Why do cats purr?
    What is a balanced diet?
    Give me a question for a quiz.
    Write a one sentence weather report.""")
